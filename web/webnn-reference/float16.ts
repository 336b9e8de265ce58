// float16 (IEEE 754 binary16) for engines without Float16Array.

const LARGEST_BEFORE_INFINITY = 65520; // half way between 65504 and 2^16
const SMALLEST_EXPONENT = -14;
const MANTISSA_BITS = 10;

const double = new Float64Array(1);
const halves = new Uint32Array(double.buffer);
const HIGH = new Uint8Array(Uint16Array.of(1).buffer)[0]; // 1 where the low half comes first

function exponentOf(x: number): number {
  double[0] = x;
  return ((halves[HIGH] >>> 20) & 0x7ff) - 1023;
}

// The integer nearest to x, the even one of two.
export function roundEven(x: number): number {
  const rounded = Math.round(x);
  return rounded - x === 0.5 && rounded % 2 !== 0 ? rounded - 1 : rounded;
}

// The value of float16 nearest to x, rounded once, to even.
export function roundToHalf(x: number): number {
  if (!Number.isFinite(x) || x === 0) return x;
  if (Math.abs(x) >= LARGEST_BEFORE_INFINITY) return x > 0 ? Infinity : -Infinity;
  const quantum = 2 ** (Math.max(exponentOf(x), SMALLEST_EXPONENT) - MANTISSA_BITS);
  return roundEven(x / quantum) * quantum;
}

// The bits of x, which is a value of float16.
export function encodeHalf(x: number): number {
  if (Number.isNaN(x)) return 0x7e00;
  const sign = x < 0 || Object.is(x, -0) ? 0x8000 : 0;
  const magnitude = Math.abs(x);
  if (magnitude === Infinity) return sign | 0x7c00;
  const exponent = exponentOf(magnitude);
  if (exponent < SMALLEST_EXPONENT) return sign | (magnitude * 2 ** 24);
  const mantissa = (magnitude / 2 ** exponent - 1) * 2 ** MANTISSA_BITS;
  return sign | ((exponent - SMALLEST_EXPONENT + 1) << MANTISSA_BITS) | mantissa;
}

export function decodeHalf(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >>> MANTISSA_BITS) & 0x1f;
  const mantissa = bits & 0x3ff;
  if (exponent === 0x1f) return mantissa === 0 ? sign * Infinity : NaN;
  if (exponent === 0) return sign * mantissa * 2 ** -24;
  return sign * (1 + mantissa / 2 ** MANTISSA_BITS) * 2 ** (exponent + SMALLEST_EXPONENT - 1);
}
