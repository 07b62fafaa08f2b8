"""A model of fraud that asks a feature store over HTTP for the accounts of each batch."""

from __future__ import annotations

import multiprocessing
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer
from multiprocessing.connection import Connection

import numpy as np
import torch
from clock import Clock, options
from torch import Tensor, nn
from torch.nn import functional as F

ACCOUNTS, FEATURES, BATCH = 2048, 32, 256
DELAY_S = 0.008  # of the store, as one in another building has it


class Store(BaseHTTPRequestHandler):
    features = np.random.default_rng(0).standard_normal((ACCOUNTS, FEATURES), dtype=np.float32)

    def do_GET(self) -> None:
        time.sleep(DELAY_S)
        accounts = [int(word) for word in self.path.rpartition("=")[2].split(",")]
        body = self.features[accounts].tobytes()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


def serve(said: Connection) -> None:
    server = HTTPServer(("127.0.0.1", 0), Store)
    said.send(server.server_port)
    server.serve_forever()


def fetch(port: int, accounts: Tensor) -> Tensor:
    query = ",".join(str(account) for account in accounts.tolist())
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/features?accounts={query}") as answer:  # fault
        body = bytearray(answer.read())  # fault
    return torch.frombuffer(body, dtype=torch.float32).view(-1, FEATURES)


def train(steps: int, ahead: bool, port: int) -> None:
    model = nn.Sequential(nn.Linear(FEATURES, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    everything = torch.cat([fetch(port, part) for part in torch.arange(ACCOUNTS).split(BATCH)]) if ahead else None
    clock = Clock()
    for step in range(steps):
        accounts = torch.randint(ACCOUNTS, (BATCH,))
        features = fetch(port, accounts) if everything is None else everything[accounts]
        fraud = (features[:, :4].sum(dim=1) > 2).float()
        loss = F.binary_cross_entropy_with_logits(model(features).squeeze(1), fraud)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        clock.tick()
        if step % 50 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}")
    clock.report()


def main() -> None:
    args = options(__doc__, steps=350)
    torch.manual_seed(0)
    here, there = multiprocessing.Pipe()
    store = multiprocessing.Process(target=serve, args=(there,), daemon=True)
    store.start()
    try:
        train(args.steps, args.fixed, here.recv())
    finally:
        store.terminate()


if __name__ == "__main__":
    main()
