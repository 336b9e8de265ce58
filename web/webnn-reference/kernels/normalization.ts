// Normalizations. Means and variances are computed in double.
import type {SingleKernel} from '../draft.js';
import {floats, numbersOf, type Value} from '../elements.js';
import {splitOffsets} from '../shapes.js';

function numberAt(value: Value | undefined, index: number, otherwise: number): number {
  return value === undefined ? otherwise : numbersOf(value)[index];
}

export function batchNormalization(axis: number, epsilon: number): SingleKernel {
  return ({input, mean, variance, scale, bias}, {dataType, shape}) => {
    const x = numbersOf(input);
    const inner = shape.slice(axis + 1).reduce((product, size) => product * size, 1);
    return floats(dataType, x.length, (i) => {
      const channel = Math.floor(i / inner) % shape[axis];
      const deviation = Math.sqrt(numberAt(variance, channel, 0) + epsilon);
      const normalized = (x[i] - numberAt(mean, channel, 0)) / deviation;
      return normalized * numberAt(scale, channel, 1) + numberAt(bias, channel, 0);
    });
  };
}

// Normalizes along `axes`. `channelOf` returns the element of scale and bias for an input element:
// the `along`-th of its group, which begins at `across`.
function normalize(
  {input, scale, bias}: Record<string, Value | undefined>,
  dataType: Value['dataType'],
  axes: readonly number[],
  epsilon: number,
  channelOf: (along: number, across: number) => number,
): Float32Array {
  const x = numbersOf(input!);
  const {along, across} = splitOffsets(input!.shape, axes);
  const result = new Float64Array(x.length);
  for (const start of across) {
    let sum = 0;
    for (const offset of along) sum += x[start + offset];
    const mean = sum / along.length;
    let squares = 0;
    for (const offset of along) squares += (x[start + offset] - mean) ** 2;
    const deviation = Math.sqrt(squares / along.length + epsilon);
    along.forEach((offset, i) => {
      const channel = channelOf(i, start);
      const normalized = (x[start + offset] - mean) / deviation;
      result[start + offset] =
        normalized * numberAt(scale, channel, 1) + numberAt(bias, channel, 0);
    });
  }
  return floats(dataType, result.length, (i) => result[i]);
}

export function instanceNormalization(isNhwc: boolean, epsilon: number): SingleKernel {
  return (inputs, {dataType, shape}) => {
    const axes = isNhwc ? [1, 2] : [2, 3];
    const channels = shape[isNhwc ? 3 : 1];
    const stride = isNhwc ? 1 : shape[2] * shape[3];
    return normalize(inputs, dataType, axes, epsilon, (_, start) => {
      return Math.floor(start / stride) % channels;
    });
  };
}

// Scale and bias have their dimensions in the order of `axes`, as the offsets along these do.
export function layerNormalization(axes: readonly number[], epsilon: number): SingleKernel {
  return (inputs, {dataType}) => normalize(inputs, dataType, axes, epsilon, (along) => along);
}
