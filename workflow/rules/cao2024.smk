# Cao and Katzfuss (2024): how much estimates of Gaussian probabilities vary (N = 900 and 6,400).
# Settings: the block `cao2024` of config/default.yaml. Problems are made by the rows themselves, from a seed.

#: What each part of the measures reads.
MEASURED["cao2024"] = {"probabilities": ["spread", "reference"]}
#: Names of targets, and what each makes: the whole study.
TARGETS |= {"cao": whole("cao2024")}


# Thirty estimates of one probability, again and again.
use rule run as cao2024_spread with:
    pathvars:
        rows="cao2024/spread/{kind}/{block}",


# Probabilities of orthants by twisted expectation propagation.
use rule run as cao2024_reference with:
    pathvars:
        rows="cao2024/reference/{block}",
