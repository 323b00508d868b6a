# The maximum of a multinomial likelihood with PyTorch's automatic differentiation
# and its L-BFGS, one thread. Called by classes.R:
#
#   classes_torch.py <x: doubles, row-major> <y: doubles, from 0> <N> <d> <K>
#
# Prints CPU seconds and the log-likelihood.
import sys
import time

import numpy
import torch

torch.set_num_threads(1)
torch.set_default_dtype(torch.float64)
path_x, path_y = sys.argv[1:3]
n_data, n_dim, n_class = map(int, sys.argv[3:6])
x = torch.from_numpy(numpy.fromfile(path_x).reshape(n_data, n_dim))
y = torch.from_numpy(numpy.fromfile(path_y).astype("int64"))

begin = time.process_time()
theta = torch.zeros(n_dim, n_class - 1, requires_grad=True)
optimizer = torch.optim.LBFGS(
    [theta],
    max_iter=1000,
    tolerance_grad=1e-7,
    tolerance_change=1e-11,
    line_search_fn="strong_wolfe",
)


def loss():
    eta = torch.cat([torch.zeros(n_data, 1), x @ theta], 1)
    return torch.nn.functional.cross_entropy(eta, y)


def closure():
    optimizer.zero_grad()
    value = loss()
    value.backward()
    return value


optimizer.step(closure)
seconds = time.process_time() - begin
print(seconds, -n_data * loss().item())
