"""BoTorch's MVNXPB, bivariate conditioning, of a rectangle with the same limits for all coordinates.

``mvnxpb_peer.py covariance.csv lower upper`` prints a line of JSON.
"""

import json
import sys
import time

import botorch
import numpy as np
import torch
from botorch.utils.probability.mvnxpb import MVNXPB

torch.set_num_threads(1)
cov = torch.from_numpy(np.loadtxt(sys.argv[1], delimiter=","))
limits = torch.tensor([float(x) for x in sys.argv[2:4]], dtype=torch.double)
MVNXPB(cov[:5, :5], limits.expand(5, 2)).solve()  # what is loaded at the first call is not counted
start = time.process_time()
found = MVNXPB(cov, limits.expand(len(cov), 2)).solve()
seconds = time.process_time() - start
version = f"BoTorch {botorch.__version__}, torch {torch.__version__}"
print(json.dumps({"version": version, "log_probability": float(found), "cpu_seconds": seconds}))
