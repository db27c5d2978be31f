// Draws the pictures that the wall comes with: `node examples/photo-wall/make-pictures.mjs`. It uses only arithmetic and zlib.
import { writeFileSync } from 'node:fs';
import { crc32, deflateSync } from 'node:zlib';

const FOLDER = new URL('pictures/', import.meta.url);

// Colours are [r, g, b] from 0 to 255; heights and distances are shares of the picture's height.
const hex = (text) => [0, 2, 4].map((at) => Number.parseInt(text.slice(at, at + 2), 16));
const clamp = (value) => Math.min(1, Math.max(0, value));
const smooth = (value) => clamp(value) ** 2 * (3 - 2 * clamp(value));
const mix = (a, b, share) => a.map((from, i) => from + (b[i] - from) * share);
const add = (a, b, share) => a.map((from, i) => Math.min(255, from + b[i] * share));

/** A colour ramp through evenly spaced stops. */
function ramp(...stops) {
  const colours = stops.map(hex);
  return (share) => {
    const at = clamp(share) * (colours.length - 1);
    const below = Math.min(colours.length - 2, Math.floor(at));
    return mix(colours[below], colours[below + 1], at - below);
  };
}

/** A repeatable number from 0 to 1 for a whole number. */
function chance(seed) {
  let bits = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return ((bits ^ (bits >>> 16)) >>> 0) / 2 ** 32;
}

/** One-dimensional value noise in `octaves`, each half as high and twice as fine: the outline of a ridge. */
function noise(x, seed, octaves = 5) {
  let sum = 0;
  for (let octave = 0, size = 1, height = 0.5; octave < octaves; octave++, size *= 2, height /= 2) {
    const at = x * size;
    const cell = Math.floor(at);
    const from = chance(cell + seed * 7919 + octave * 104729);
    const to = chance(cell + 1 + seed * 7919 + octave * 104729);
    sum += (from + (to - from) * smooth(at - cell)) * height;
  }
  return sum;
}

/** The share of the pixel at `y` that lies below the outline `top`: an edge without stairs. */
const below = (y, top, pixel) => clamp((y - top) / pixel + 0.5);
const disc = (x, y, cx, cy, radius, pixel) => clamp((radius - Math.hypot(x - cx, y - cy)) / pixel + 0.5);
const glow = (x, y, cx, cy, reach) => Math.exp(-((Math.hypot(x - cx, y - cy) / reach) ** 2));

/** Ridges one before the other; the farther, the more of the sky's haze they take. */
function ridges(colour, x, y, pixel, { count, from, to, high, seed, haze, near, octaves, width = 1 }) {
  for (let i = 0; i < count; i++) {
    const depth = i / Math.max(1, count - 1);
    const top =
      from +
      (to - from) * depth -
      high * (0.55 + depth * 0.45) * noise(x * width * (1.1 + depth) + i * 9, seed + i, octaves);
    const body = mix(haze, near, depth ** 0.8);
    const misty = mix(body, haze, 0.55 * (1 - depth) * smooth((y - top) / 0.22));
    colour = mix(colour, misty, below(y, top, pixel));
  }
  return colour;
}

/** Stars on a grid of cells, some cells empty. */
function stars(x, y, seed, density) {
  const size = 0.028;
  const [column, row] = [Math.floor(x / size), Math.floor(y / size)];
  const id = column * 374761 + row * 668265 + seed;
  if (chance(id) > density) return 0;
  const cx = (column + 0.2 + 0.6 * chance(id + 1)) * size;
  const cy = (row + 0.2 + 0.6 * chance(id + 2)) * size;
  const radius = 0.0009 + 0.0015 * chance(id + 3) ** 3;
  return clamp(1.6 - Math.hypot(x - cx, y - cy) / radius) * (0.35 + 0.65 * chance(id + 4));
}

/** The outline of a row of firs. */
function firs(x, base, high, seed, spacing) {
  let top = base;
  for (const shift of [0, 0.5]) {
    const cell = Math.floor(x / spacing + shift);
    const centre = (cell - shift + 0.5 + 0.35 * (chance(cell + seed) - 0.5)) * spacing;
    const tall = high * (0.45 + 0.55 * chance(cell * 3 + seed + shift * 101));
    const off = Math.abs(x - centre) / (tall * 0.3);
    const jag = 0.06 * tall * (((off * 9) % 1) - 0.5);
    if (off < 1) top = Math.min(top, base - tall * (1 - off) + jag);
  }
  return top;
}

const scenes = {
  'morning-over-the-ridges': [
    1080,
    720,
    (x, y, pixel) => {
      const sky = ramp('4f7cac', '8fb3d0', 'f6d5b5', 'fbb483');
      let colour = sky(y / 0.62);
      colour = mix(colour, [255, 233, 190], 0.8 * glow(x, y, 1.02, 0.47, 0.2));
      colour = mix(colour, [255, 250, 236], disc(x, y, 1.02, 0.47, 0.06, pixel));
      return ridges(colour, x, y, pixel, {
        count: 6,
        from: 0.66,
        to: 1.02,
        high: 0.3,
        seed: 11,
        haze: hex('e9b59a'),
        near: hex('1d2b45'),
      });
    },
  ],
  'full-moon-on-the-lake': [
    1080,
    720,
    (x, y, pixel) => {
      const shore = 0.6;
      const wet = y > shore;
      const wave = wet
        ? 0.012 * Math.sin(y * 210 - x * 7) * smooth((y - shore) / 0.2) + 0.006 * Math.sin(y * 90 + x * 23)
        : 0;
      const [sx, sy] = wet ? [x + wave, shore - (y - shore) * 0.94] : [x, y];
      let colour = ramp('0b1030', '1d2a5c', '46508f', '8e7fb0')(sy / shore);
      colour = add(colour, [255, 255, 255], wet ? 0 : stars(sx, sy, 5, 0.33) * (1 - sy / shore));
      colour = add(colour, [150, 165, 225], 0.55 * glow(sx, sy, 0.52, 0.22, 0.2));
      colour = mix(colour, [250, 246, 226], disc(sx, sy, 0.52, 0.22, 0.062, pixel));
      colour = ridges(colour, sx, sy, pixel, {
        count: 4,
        from: 0.6,
        to: 0.64,
        high: 0.34,
        seed: 31,
        haze: hex('5d5f9c'),
        near: hex('0d1330'),
      });
      if (wet) colour = mix(mix(colour, hex('141d47'), 0.34), hex('0a0f2a'), 0.5 * smooth((y - 0.7) / 0.3));
      return mix(
        colour,
        hex('070a1c'),
        below(
          y,
          firs(x, 1.02, 0.2, 3, 0.085) + 0.13 * smooth((x - 0.3) / 0.25) * smooth((1.25 - x) / 0.25),
          pixel,
        ),
      );
    },
  ],
  'dunes-at-noon': [
    864,
    1080,
    (x, y, pixel) => {
      let colour = ramp('2f8fbf', '7fc0d8', 'd9e8e0', 'f7e7c6')(y / 0.5);
      colour = mix(
        colour,
        [255, 252, 238],
        disc(x, y, 0.55, 0.2, 0.045, pixel) + 0.5 * glow(x, y, 0.55, 0.2, 0.11),
      );
      const dunes = [
        [0.5, 0.16, 'efc793', 'd79a66'],
        [0.62, 0.24, 'eab878', 'c47f4b'],
        [0.78, 0.3, 'e2a25d', 'ad6237'],
        [1, 0.36, 'd58a45', '8b4526'],
      ];
      for (const [i, [base, high, lit, dark]] of dunes.entries()) {
        const crest = (at) => base - high * noise(at * (3.4 - i * 0.35) + i * 5.3, 50 + i, 1);
        const top = crest(x);
        const slope = smooth((crest(x + 0.02) - crest(x - 0.02)) * 9 + 0.42 + (y - top) * 0.7);
        const ripple = 4 * Math.sin((y - top * 0.6) * (150 - i * 22) + 9 * noise(x * 3, 70 + i, 2)) * (i / 3);
        const sand = mix(hex(lit), hex(dark), slope).map((part) => part + ripple);
        colour = mix(colour, sand, below(y, top, pixel));
      }
      return colour;
    },
  ],
  'northern-lights': [
    1080,
    675,
    (x, y, pixel) => {
      let colour = ramp('040b1f', '0a1c3a', '123a52', '1d5a5f')(y / 0.85);
      colour = add(colour, [255, 255, 255], stars(x, y, 17, 0.4) * (1 - y));
      for (const [i, tint] of [hex('2bf0a0'), hex('46d6c8'), hex('9a6bff')].entries()) {
        const foot =
          0.56 - i * 0.13 + 0.16 * Math.sin(x * (2.6 + i) + i * 2.1) + 0.1 * (noise(x * 3, 90 + i, 3) - 0.5);
        const up = foot - y;
        const rays = 0.45 + 0.55 * noise(x * 16 + 3 * Math.sin(x * 4), 60 + i, 3);
        const light = up < 0 ? Math.exp(-((up / 0.025) ** 2)) : Math.exp(-up / (0.12 + 0.12 * rays));
        colour = add(colour, tint, (0.72 - i * 0.16) * light * rays);
      }
      colour = ridges(colour, x, y, pixel, {
        count: 2,
        from: 0.84,
        to: 0.92,
        high: 0.18,
        seed: 41,
        haze: hex('10404a'),
        near: hex('0a2230'),
      });
      colour = mix(colour, hex('061019'), below(y, firs(x, 0.97, 0.17, 8, 0.07), pixel));
      return mix(colour, hex('02060c'), below(y, firs(x, 1.06, 0.3, 22, 0.13), pixel));
    },
  ],
  'evening-tide': [
    1080,
    720,
    (x, y, pixel) => {
      const sea = 0.56;
      let colour = ramp('3a2a5e', '8c4a7d', 'e8747c', 'ffb27a', 'ffd79a')(y / sea);
      for (let i = 0; i < 5; i++) {
        const band = 0.12 + i * 0.075;
        const cloud =
          smooth((noise(x * 2.2 + i * 3.7, 120 + i, 4) - 0.45) * 5) *
          Math.exp(-(((y - band) / (0.014 + i * 0.003)) ** 2));
        colour = mix(colour, mix(hex('ffd0a8'), hex('7a4478'), i % 2), 0.6 * cloud);
      }
      colour = mix(colour, [255, 214, 140], 0.75 * glow(x, y, 0.72, sea, 0.26));
      colour = mix(colour, [255, 247, 222], disc(x, y, 0.72, sea - 0.02, 0.105, pixel));
      if (y > sea) {
        const depth = (y - sea) / (1 - sea);
        colour = ramp('f59c7c', 'a9557f', '4a2f66', '2a1f4a')(depth ** 0.7);
        const swell = Math.sin((y - sea) ** 0.55 * 150 + 4 * noise(x * 5, 140, 3)) * 0.5 + 0.5;
        const path = Math.exp(-(((x - 0.72) / (0.09 + depth * 0.16)) ** 2));
        colour = mix(
          colour,
          [255, 226, 170],
          path * smooth(swell * 1.5 - 0.35 - depth * 0.2) * (0.95 - depth * 0.5),
        );
        colour = mix(colour, hex('2a1f4a'), 0.16 * (1 - swell) * (1 - path));
      }
      const rock = 1.04 - 0.42 * smooth((0.36 - x) / 0.42) - 0.07 * noise(x * 9, 150, 4);
      return mix(colour, mix(hex('2b1d3f'), hex('150e24'), (y - rock) * 3), below(y, rock, pixel));
    },
  ],
  'hills-in-may': [
    864,
    1080,
    (x, y, pixel) => {
      let colour = ramp('5aa9e0', '9fd0ee', 'e3f3f6')(y / 0.5);
      for (const [cx, cy, size] of [
        [0.2, 0.17, 0.09],
        [0.6, 0.1, 0.07],
        [0.5, 0.29, 0.055],
      ]) {
        for (let i = 0; i < 5; i++) {
          const puff = disc(
            x,
            y,
            cx + (i - 2) * size * 0.62,
            cy - size * 0.3 * (2 - Math.abs(i - 2)),
            size * (0.66 + 0.22 * (2 - Math.abs(i - 2)) * chance(i + cx * 90)),
            pixel,
          );
          colour = mix(
            colour,
            mix([255, 255, 255], hex('d3e6f1'), smooth((y - cy) / size + 0.3)),
            puff * below(cy + size * 0.3, y, pixel),
          );
        }
      }
      const greens = [
        ['a9cfa9', 0.48, 0.14],
        ['86bd7c', 0.6, 0.2],
        ['62a857', 0.74, 0.22],
        ['418f45', 0.88, 0.22],
        ['256a37', 1.04, 0.2],
      ];
      for (const [i, [green, base, high]] of greens.entries()) {
        const top = base - high * noise(x * (3.2 - i * 0.3) + i * 3.1, 200 + i, 2);
        const lit = mix(add(hex(green), [60, 55, 10], 0.5), hex(green), smooth((y - top) / 0.14));
        const rows = i === 2 ? 7 * Math.sin(x * 60 + (y - top) * 120) * smooth((y - top) / 0.05) : 0;
        colour = mix(
          colour,
          lit.map((part) => part + rows),
          below(y, top, pixel),
        );
        if (i === 1 || i === 3) {
          const cell = Math.floor(x / (0.05 + i * 0.02));
          const centre = (cell + 0.5) * (0.05 + i * 0.02);
          const crown = (0.012 + i * 0.006) * (0.6 + 0.5 * chance(cell + i * 77));
          const ground = base - high * noise(centre * (3.2 - i * 0.3) + i * 3.1, 200 + i, 2);
          const tree =
            chance(cell * 5 + i) < 0.45 ? disc(x, y, centre, ground - crown * 0.7, crown, pixel) : 0;
          colour = mix(colour, mix(hex('2f6f3e'), hex('5f9f4e'), smooth((ground - y) / crown / 1.5)), tree);
        }
      }
      return colour;
    },
  ],
};

/** A PNG file (ISO/IEC 15948) of 8-bit RGB; each row takes the filter that leaves the smallest numbers. */
function png(width, height, pixels) {
  const stride = width * 3;
  const rows = Buffer.alloc((stride + 1) * height);
  const trial = Buffer.alloc(stride);
  for (let y = 0; y < height; y++) {
    let least = Number.POSITIVE_INFINITY;
    for (const filter of [1, 2, 4]) {
      let sum = 0;
      for (let i = 0; i < stride; i++) {
        const left = i < 3 ? 0 : pixels[y * stride + i - 3];
        const up = y === 0 ? 0 : pixels[(y - 1) * stride + i];
        const corner = i < 3 || y === 0 ? 0 : pixels[(y - 1) * stride + i - 3];
        const guess = filter === 1 ? left : filter === 2 ? up : paeth(left, up, corner);
        trial[i] = pixels[y * stride + i] - guess;
        sum += Math.min(trial[i], 256 - trial[i]);
      }
      if (sum >= least) continue;
      least = sum;
      rows[y * (stride + 1)] = filter;
      trial.copy(rows, y * (stride + 1) + 1);
    }
  }
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 2], 8);
  const signature = Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]);
  return Buffer.concat([
    signature,
    chunk('IHDR', header),
    chunk('IDAT', deflateSync(rows, { level: 9, memLevel: 9 })),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

function paeth(left, up, corner) {
  const [a, b, c] = [left, up, corner].map((value) => Math.abs(left + up - corner - value));
  return a <= b && a <= c ? left : b <= c ? up : corner;
}

function chunk(type, data) {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const whole = Buffer.alloc(body.length + 8);
  whole.writeUInt32BE(data.length, 0);
  body.copy(whole, 4);
  whole.writeUInt32BE(crc32(body) >>> 0, body.length + 4);
  return whole;
}

for (const [name, [width, height, paint]] of Object.entries(scenes)) {
  const pixels = Buffer.alloc(width * height * 3);
  for (let y = 0, at = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      for (const part of paint(x / height, y / height, 1 / height))
        pixels[at++] = Math.round(Math.min(255, Math.max(0, part)));
    }
  }
  const file = png(width, height, pixels);
  writeFileSync(new URL(`${name}.png`, FOLDER), file);
  process.stdout.write(`${name}.png ${width} x ${height}, ${Math.round(file.length / 1024)} KB\n`);
}
