# Targets of the study of Neal (1997), each alone.


rule neal:
    input:
        expand("<results>/neal1997/{name}.csv", name=["verdicts", "measures"]),
        [path for path in drawn("neal1997", "tables", "csv")],
        [path for path in drawn("neal1997", "figures", "png")],
    localrule: True


rule three_classes:
    input:
        made_by("neal1997", "classes", "bayes", "laplace"),
    localrule: True


rule outliers:
    input:
        made_by("neal1997", "outliers"),
    localrule: True
