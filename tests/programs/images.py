"""Image filters and segmentation on grey images."""

from __future__ import annotations

import numpy as np


def sobel_edges(image, threshold):
    """Gradient magnitude by Sobel's stencils, non-maximum suppression, threshold.

    Source: J. Canny, A computational approach to edge detection, IEEE Trans. PAMI 8 (1986) 679.
    """
    p = np.pad(image, 1, mode="edge")
    gx = (
        (p[:-2, 2:] + 2 * p[1:-1, 2:] + p[2:, 2:])
        - (p[:-2, :-2] + 2 * p[1:-1, :-2] + p[2:, :-2])
    )
    gy = (
        (p[2:, :-2] + 2 * p[2:, 1:-1] + p[2:, 2:])
        - (p[:-2, :-2] + 2 * p[:-2, 1:-1] + p[:-2, 2:])
    )
    magnitude = np.hypot(gx, gy)
    angle = np.rad2deg(np.arctan2(gy, gx)) % 180
    thin = np.zeros_like(magnitude)
    rows, columns = magnitude.shape
    for i in range(1, rows - 1):
        for j in range(1, columns - 1):
            a = angle[i, j]
            if a < 22.5 or a >= 157.5:
                before, after = magnitude[i, j - 1], magnitude[i, j + 1]
            elif a < 67.5:
                before, after = magnitude[i - 1, j - 1], magnitude[i + 1, j + 1]
            elif a < 112.5:
                before, after = magnitude[i - 1, j], magnitude[i + 1, j]
            else:
                before, after = magnitude[i - 1, j + 1], magnitude[i + 1, j - 1]
            if magnitude[i, j] >= before and magnitude[i, j] >= after:
                thin[i, j] = magnitude[i, j]
    return thin, thin > threshold


def bilateral_filter(image, radius, sigma_space, sigma_range):
    """Edge-preserving smoothing, all pixels at once per offset (Tomasi, Manduchi, ICCV 1998)."""
    h, w = image.shape
    padded = np.pad(image, radius, mode="reflect")
    total = np.zeros_like(image)
    weight = np.zeros_like(image)
    for dy in range(-radius, radius + 1):
        for dx in range(-radius, radius + 1):
            shifted = padded[radius + dy : radius + dy + h, radius + dx : radius + dx + w]
            g = np.exp(-(dx * dx + dy * dy) / (2 * sigma_space**2))
            g = g * np.exp(-((shifted - image) ** 2) / (2 * sigma_range**2))
            total += g * shifted
            weight += g
    return total / weight


def median_filter(image):
    """3 x 3 median, the border kept, by stacking the nine shifts."""
    out = image.copy()
    shifts = [image[i : i + image.shape[0] - 2, j : j + image.shape[1] - 2]
              for i in range(3) for j in range(3)]
    out[1:-1, 1:-1] = np.median(np.stack(shifts), axis=0)
    return out


def otsu_threshold(image):
    """Threshold of greatest between-class variance (N. Otsu, IEEE Trans. SMC 9 (1979) 62)."""
    histogram = np.bincount(image.ravel(), minlength=256)
    total = image.size
    mean = np.dot(np.arange(256), histogram)
    below = 0
    sum_below = 0.0
    best, threshold = 0.0, 0
    for t in range(256):
        below += histogram[t]
        if below == 0:
            continue
        above = total - below
        if above == 0:
            break
        sum_below += t * histogram[t]
        difference = sum_below / below - (mean - sum_below) / above
        between = below * above * difference**2
        if between > best:
            best = between
            threshold = t
    return threshold, np.where(image > threshold, np.uint8(255), np.uint8(0))


def floyd_steinberg(image):
    """Error-diffusion dithering to one bit (R. W. Floyd, L. Steinberg, Proc. SID 17 (1976) 75)."""
    work = image.astype(np.float32)
    h, w = work.shape
    for y in range(h):
        for x in range(w):
            old = work[y, x]
            new = np.float32(255.0) if old > 127.5 else np.float32(0.0)
            work[y, x] = new
            error = old - new
            if x + 1 < w:
                work[y, x + 1] += error * 7 / 16
            if y + 1 < h:
                if x > 0:
                    work[y + 1, x - 1] += error * 3 / 16
                work[y + 1, x] += error * 5 / 16
                if x + 1 < w:
                    work[y + 1, x + 1] += error * 1 / 16
    return work.astype(np.uint8)


def chamfer_distance(mask):
    """Two-pass 3-4 chamfer distance transform.

    Source: G. Borgefors, Distance transformations in digital images, CVGIP 34 (1986) 344.
    """
    h, w = mask.shape
    big = 10 * (h + w)
    d = np.where(mask, 0, big)
    d = np.pad(d, 1, constant_values=big)
    for i in range(1, h + 1):
        for j in range(1, w + 1):
            if d[i, j] != 0:
                d[i, j] = min(
                    d[i - 1, j - 1] + 4,
                    d[i - 1, j] + 3,
                    d[i - 1, j + 1] + 4,
                    d[i, j - 1] + 3,
                )
    for i in range(h, 0, -1):
        for j in range(w, 0, -1):
            if d[i, j] != 0:
                d[i, j] = min(
                    d[i, j],
                    d[i + 1, j + 1] + 4,
                    d[i + 1, j] + 3,
                    d[i + 1, j - 1] + 4,
                    d[i, j + 1] + 3,
                )
    return d[1:-1, 1:-1]


def equalise(image):
    """Histogram equalisation of an 8-bit image, written back into it."""
    histogram, _ = np.histogram(image, bins=256, range=(0, 256))
    cdf = histogram.cumsum()
    lowest = cdf[np.nonzero(cdf)][0]
    table = np.round((cdf - lowest) / max(image.size - lowest, 1) * 255).clip(0, 255)
    image[...] = table.astype(np.uint8)[image]


def flood_fill(image, row, column, colour):
    """Fills the 4-connected region of one colour with an explicit stack; writes image."""
    h, w = image.shape
    old = image[row, column]
    stack = np.zeros((4 * h * w + 1, 2), dtype=np.int64)
    stack[0] = row, column
    top = 1
    filled = 0
    while top > 0 and old != colour:
        top -= 1
        y, x = stack[top]
        if y < 0 or y >= h or x < 0 or x >= w:
            continue
        if image[y, x] != old:
            continue
        image[y, x] = colour
        filled += 1
        for dy, dx in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            stack[top] = y + dy, x + dx
            top += 1
    return filled


def harris_corners(image, k, threshold):
    """Corner response with a box window, local maxima over the threshold.

    Source: C. Harris, M. Stephens, A combined corner and edge detector, Alvey 1988.
    """
    ix = np.zeros_like(image)
    iy = np.zeros_like(image)
    ix[:, 1:-1] = (image[:, 2:] - image[:, :-2]) / 2
    iy[1:-1, :] = (image[2:, :] - image[:-2, :]) / 2

    def box(a):
        p = np.pad(a, 1)
        s = np.zeros_like(a)
        for i in range(3):
            for j in range(3):
                s += p[i : i + a.shape[0], j : j + a.shape[1]]
        return s / 9

    xx, yy, xy = box(ix * ix), box(iy * iy), box(ix * iy)
    response = xx * yy - xy**2 - k * (xx + yy) ** 2
    peak = np.ones(image.shape, dtype=bool)
    inner = response[1:-1, 1:-1]
    for i in range(3):
        for j in range(3):
            if i != 1 or j != 1:
                peak[1:-1, 1:-1] &= inner > response[i : i + inner.shape[0], j : j + inner.shape[1]]
    peak[[0, -1]] = False
    peak[:, [0, -1]] = False
    return response, np.argwhere(peak & (response > threshold * response.max()))


def grey(n, m, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (n, m), dtype=np.uint8)


PROGRAMS = (
    (sobel_edges, lambda n: (grey(n, n + 2) / 255.0, 1.0), 10, 200, "published"),
    (bilateral_filter, lambda n: (grey(n, n) / 255.0, 2, 1.5, 0.2), 12, 256, ""),
    (median_filter, lambda n: (grey(n, n + 1),), 12, 256, "views"),
    (otsu_threshold, lambda n: (grey(n, n),), 16, 512, "data-loop"),
    (floyd_steinberg, lambda n: (grey(n, n + 3),), 10, 150, ""),
    (chamfer_distance, lambda n: (grey(n, n) > 240,), 10, 150, "published"),
    (equalise, lambda n: (grey(n, n) // 2 + 40,), 16, 512, "views"),
    (flood_fill, lambda n: (grey(n, n) // 160, n // 2, n // 2, 7), 9, 120, "data-loop"),
    (harris_corners, lambda n: (grey(n, n) / 255.0, 0.05, 0.1), 14, 256, "published views"),
)
