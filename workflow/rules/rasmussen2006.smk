# Targets of the study of Rasmussen and Williams (2006), chapter 3, each alone.


rule chapter3:
    input:
        expand("<results>/rasmussen2006/{name}.csv", name=["verdicts", "measures"]),
        [path for path in drawn("rasmussen2006", "tables", "csv")],
        [path for path in drawn("rasmussen2006", "figures", "png")],
    localrule: True


rule digits_ten:
    input:
        made_by("rasmussen2006", "tenclass", "others"),
    localrule: True


rule digits_two:
    input:
        made_by("rasmussen2006", "surface", "counts", "controls", "comparators", "exact"),
    localrule: True


rule crossvalidation:
    input:
        made_by("rasmussen2006", "crossvalidation"),
    localrule: True
