// Matrix products.
import type {SingleKernel} from '../draft.js';
import {floats, numbersOf} from '../elements.js';
import {broadcastOffsets} from '../shapes.js';

export const matmul: SingleKernel = ({a, b}, {dataType, shape}) => {
  const [m, n] = shape.slice(-2);
  const k = a.shape[a.shape.length - 1];
  const batches = shape.slice(0, -2);
  const matricesOfA = broadcastOffsets(a.shape.slice(0, -2), batches);
  const matricesOfB = broadcastOffsets(b.shape.slice(0, -2), batches);
  const x = numbersOf(a);
  const y = numbersOf(b);
  return floats(dataType, matricesOfA.length * m * n, (i) => {
    const matrix = Math.floor(i / (m * n));
    const row = matricesOfA[matrix] * m * k + (Math.floor(i / n) % m) * k;
    const column = matricesOfB[matrix] * k * n + (i % n);
    let sum = 0;
    for (let j = 0; j < k; ++j) sum += x[row + j] * y[column + j * n];
    return sum;
  });
};

export interface GemmAttributes {
  alpha: number;
  beta: number;
  isATransposed: boolean;
  isBTransposed: boolean;
}

export function gemm({alpha, beta, isATransposed, isBTransposed}: GemmAttributes): SingleKernel {
  return (inputs, {dataType, shape}) => {
    const {a, b} = inputs;
    const c = inputs.c as typeof a | undefined;
    const [m, n] = shape;
    const k = a.shape[isATransposed ? 0 : 1];
    const x = numbersOf(a);
    const y = numbersOf(b);
    const [rowA, stepA] = isATransposed ? [1, m] : [k, 1];
    const [columnB, stepB] = isBTransposed ? [k, 1] : [1, n];
    const atC = c === undefined ? undefined : broadcastOffsets(c.shape, shape);
    return floats(dataType, m * n, (i) => {
      const row = Math.floor(i / n) * rowA;
      const column = (i % n) * columnB;
      let sum = 0;
      for (let j = 0; j < k; ++j) sum += x[row + j * stepA] * y[column + j * stepB];
      return alpha * sum + (atC === undefined ? 0 : beta * numbersOf(c!)[atC[i]]);
    });
  };
}
