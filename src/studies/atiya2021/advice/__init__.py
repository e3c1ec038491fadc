"""The problems on which the advice of the paper is tested: twenty real data sets with fitted hyperparameters."""
