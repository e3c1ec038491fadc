"""The toolbox that the paper used for its Markov chains, as it ships them: sampler, evidence, posterior."""
