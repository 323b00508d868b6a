# Loss and gradient of a network over all rows with PyTorch, one thread, as its
# tutorials write it. Called by network.R:
#
#   network_torch.py <x: doubles, row-major> <y: doubles> <N> <rounds> <block> <width> ...
import sys
import time

import numpy
import torch

torch.set_num_threads(1)
torch.set_default_dtype(torch.float64)
n_data, rounds, block = map(int, sys.argv[3:6])
widths = list(map(int, sys.argv[6:]))
x = torch.from_numpy(numpy.fromfile(sys.argv[1]).reshape(n_data, widths[0]))
y = torch.from_numpy(numpy.fromfile(sys.argv[2]))

layers = []
for n_in, n_out in zip(widths[:-1], widths[1:]):
    layers += [torch.nn.Linear(n_in, n_out), torch.nn.Tanh()]
net = torch.nn.Sequential(*layers[:-1])


def evaluate():
    net.zero_grad()
    total = 0.0
    for first in range(0, n_data, block):
        rows = slice(first, first + block)
        loss = 0.5 * ((net(x[rows])[:, 0] - y[rows]) ** 2).sum()
        loss.backward()
        total += loss.item()
    return total


evaluate()
seconds = []
for _ in range(rounds):
    begin = time.process_time()
    evaluate()
    seconds.append(time.process_time() - begin)
print(numpy.median(seconds))
