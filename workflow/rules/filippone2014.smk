# Targets of the study of Filippone and Girolami (2014), each alone.


rule pseudo_marginal:
    input:
        expand("<results>/filippone2014/{name}.csv", name=["verdicts", "measures"]),
        [path for path in drawn("filippone2014", "tables", "csv")],
        [path for path in drawn("filippone2014", "figures", "png")],
    localrule: True


rule pseudo_marginal_chains:
    input:
        made_by("filippone2014", "mix"),
    localrule: True


rule integrated_predictions:
    input:
        made_by("filippone2014", "predict"),
        made_by("filippone2014", "integrate"),
    localrule: True
