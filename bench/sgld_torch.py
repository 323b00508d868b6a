# SGLD for logistic regression with PyTorch's automatic differentiation, one
# thread, as its tutorials write it. Called by iteration.R:
#
#   sgld_torch.py <x: doubles, row-major> <y: doubles> <N> <d> <n> <iterations>
import sys
import time

import numpy
import torch

torch.set_num_threads(1)
torch.set_default_dtype(torch.float64)
path_x, path_y = sys.argv[1:3]
n_data, n_dim, n, n_iter = map(int, sys.argv[3:7])
x = torch.from_numpy(numpy.fromfile(path_x).reshape(n_data, n_dim))
y = torch.from_numpy(numpy.fromfile(path_y))
h = 1e-9
prior_sd = 2.5

theta = torch.zeros(n_dim, requires_grad=True)


def step():
    index = torch.randint(n_data, (n,))
    eta = x[index] @ theta
    loss = n_data / n * torch.nn.functional.binary_cross_entropy_with_logits(
        eta, y[index], reduction="sum"
    ) + 0.5 * (theta * theta).sum() / prior_sd**2
    (grad,) = torch.autograd.grad(loss, theta)
    with torch.no_grad():
        theta.add_(grad, alpha=-h / 2)
        theta.add_(torch.randn(n_dim), alpha=h**0.5)


for _ in range(max(10, n_iter // 10)):
    step()
begin = time.process_time()
for _ in range(n_iter):
    step()
print((time.process_time() - begin) / n_iter)
