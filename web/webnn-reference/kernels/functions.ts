// Functions of real numbers that Math lacks, in double.
export {roundEven} from '../float16.js';

// exp(-x^2) * x * a series for erf whose terms are all positive, so that no digits cancel.
function erfSeries(x: number): number {
  let term = x;
  let sum = x;
  for (let n = 1; Math.abs(term) > Math.abs(sum) * Number.EPSILON * 0.25; ++n) {
    term *= (2 * x * x) / (2 * n + 1);
    sum += term;
  }
  return (2 / Math.sqrt(Math.PI)) * Math.exp(-x * x) * sum;
}

// The continued fraction of erfc for x >= 2, evaluated from its far end.
function erfcFraction(x: number): number {
  let fraction = x;
  for (let n = 120; n > 0; --n) fraction = x + n / 2 / fraction;
  return Math.exp(-x * x) / Math.sqrt(Math.PI) / fraction;
}

export function erf(x: number): number {
  if (Number.isNaN(x)) return x;
  return Math.abs(x) < 2 ? erfSeries(x) : Math.sign(x) * (1 - erfcFraction(Math.abs(x)));
}

// 1 - erf(x), accurate also if erf is nearly 1.
function erfc(x: number): number {
  if (Number.isNaN(x)) return x;
  if (x < -2) return 2 - erfcFraction(-x);
  return x < 2 ? 1 - erfSeries(x) : erfcFraction(x);
}

export function gelu(x: number): number {
  if (x === -Infinity) return -0; // the limit; 0 times infinity is NaN
  return 0.5 * x * erfc(-x / Math.SQRT2);
}

export function sigmoid(x: number): number {
  return 1 / (1 + Math.exp(-x));
}

export function softplus(x: number): number {
  return Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x)));
}

export function relu(x: number): number {
  return Math.max(x, 0);
}
