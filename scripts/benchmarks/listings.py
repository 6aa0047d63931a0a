"""The listings printed in Jezequel, Gaillard and Rudi 2019, appendix H.2, for benchmark_awv.py."""

import math

import numpy as np


class PhiAWV:
    """PKAWV with Taylor features exactly as printed: all ordered products, dense NumPy."""

    def __init__(self, d, sigma=1.0, lbd=1.0, M=2):
        self.b = None
        self.M, self.lbd, self.sigma = M, lbd, sigma

    def taylor_phi(self, x):
        res = np.array([1.0])
        mm = np.array([1.0])
        for k in range(1, self.M + 1):
            mm = np.outer(mm, x).flatten()
            res = np.concatenate((res, mm / (self.sigma**k * np.sqrt(math.factorial(k)))))
        return res * np.exp(-np.dot(x, x) / (2 * self.sigma**2))

    def predict(self, x):
        z = self.taylor_phi(x)
        if self.b is None:
            self.b = np.zeros(len(z))
            self.A_inv = (1 / self.lbd) * np.eye(len(z))
        v = np.dot(self.A_inv, z)
        v /= np.sqrt(1 + np.dot(z, v))
        self.A_inv -= np.outer(v, v)
        self.z = z
        return np.dot(np.dot(self.A_inv, self.b), z)

    def update(self, y):
        self.b += y * self.z


def cholup(R, x, sign):
    """Return the upper factor of R'R +- x x'; the listing uses it and does not print it."""
    A = R.T @ R + (np.outer(x, x) if sign == "+" else -np.outer(x, x))
    return np.linalg.cholesky(A + 1e-13 * np.trace(A) / len(A) * np.eye(len(A))).T


class NystromListing:
    """Nystrom PKAWV with KORS as printed in H.2, with the slips of errata 16 and 18 corrected."""

    def __init__(self, d, k, lbd=1.0, eps=0.5, beta=1.0):
        self.X, self.Y, self.k, self.lbd = np.zeros((0, d)), np.zeros(0), k, lbd
        self.eps, self.beta = eps, beta
        self.R, self.KnM = np.eye(0), np.zeros((0, 0))
        self.chosen, self.S, self.SKS_inv = [], [], np.eye(0)

    @staticmethod
    def update_inv(A_inv, x):
        B, D = x[:-1][:, None], x[-1:][None]
        if A_inv.size == 0:
            return 1.0 / D
        compl = 1.0 / (D - B.T @ A_inv @ B)
        R0 = A_inv + A_inv @ B @ compl @ B.T @ A_inv
        R1 = -A_inv @ B @ compl
        return np.block([[R0, R1], [R1.T, compl]])

    def kors(self, K, coin):
        S = np.array([*self.S, 1.0])
        kS = K[:, -1] * S
        last = np.eye(len(kS))[:, -1]
        M = self.update_inv(self.SKS_inv, kS + self.lbd * last)
        tau = (1 + self.eps) / self.lbd * (K[-1, -1] - kS @ M @ kS)
        p = max(min(self.beta * tau, 1), 0)
        if coin < p:
            self.S.append(1 / np.sqrt(p))
            column = self.S[-1] * K[:, -1] * np.array(self.S)
            self.SKS_inv = self.update_inv(self.SKS_inv, column + self.lbd * last)
            return True
        return False

    def predict(self, x, coin):
        self.X = np.concatenate((self.X, x[None]))
        n = len(self.X)
        row = np.array([self.k(self.X[i], x) for i in self.chosen])
        self.KnM = np.concatenate((self.KnM, row[None]))
        block = np.concatenate(
            (self.KnM[self.chosen + [n - 1]], np.append(row, self.k(x, x))[:, None]), axis=1
        )
        keep = self.kors(block, coin)
        if self.chosen:
            self.R = cholup(self.R, row, "+")
        if keep:
            self.chosen.append(n - 1)
            column = np.array([self.k(self.X[i], x) for i in range(n)])
            self.KnM = np.concatenate((self.KnM, column[:, None]), axis=1)
            d = column @ column + self.lbd * column[-1]
            if len(self.chosen) == 1:
                self.R = np.array([[np.sqrt(d)]])
            else:
                b = self.KnM[self.chosen[:-1], -1]
                c = self.KnM[:, :-1].T @ column + self.lbd * b
                g = np.sqrt(1 + d)
                m = len(self.chosen)
                R = np.zeros((m, m))
                R[:-1, :-1] = self.R
                plus, minus = np.append(c / (1 + g), g), np.append(c / (1 + g), -1.0)
                A = R.T @ R + np.outer(plus, plus) - np.outer(minus, minus)
                self.R = np.linalg.cholesky(A + 1e-13 * np.trace(A) / m * np.eye(m)).T
        if not self.chosen:
            return 0.0
        right = self.KnM.T @ np.append(self.Y, 0.0)
        c = np.linalg.solve(self.R, np.linalg.solve(self.R.T, right))
        return np.array([self.k(self.X[i], x) for i in self.chosen]) @ c

    def update(self, y):
        self.Y = np.append(self.Y, y)
