// Sessions of the WebNN provider on the reference of WebNN, for its tests.
import {setFlagsFromString} from 'node:v8';
import {runInNewContext} from 'node:vm';

import {model} from './model.mjs';
import {load} from './package.mjs';

export const reference = await load('../webnn-reference/index');
export const {env, InferenceSession, Tensor} = await load();
export const {loadCore} = await load('core');

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc');

// Has WebNN installed until the test ends, and counts what is done with it.
export function withWebNN(t, options) {
  t.after(reference.install(options));
  return reference.instrument(globalThis.navigator.ml);
}

export function create(bytes, options = {}, provider = 'webnn') {
  return InferenceSession.create(bytes, {
    executionProviders: [provider, 'wasm'],
    ...options,
  });
}

export const floats = (values, dims = [values.length]) => new Tensor('float32', values, dims);

// Waits until what is not referred to is collected and `isDone`.
export async function collected(isDone) {
  for (let round = 0; round < 50 && !isDone(); ++round) {
    collect();
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

const float = (shape) => (name) => ({name, type: 'float32', shape});
const node = (op, inputs, output) => ({op, inputs, outputs: [output], name: `makes ${output}`});

// y = (a + b) * c and z = (a + b) - c: five slots of one type and shape.
export function arithmetic(shape = [2, 3], type = 'float32') {
  const value = (name) => ({name, type, shape});
  return model({
    nodes: [
      node('Add', ['a', 'b'], 'sum'),
      node('Mul', ['sum', 'c'], 'y'),
      node('Sub', ['sum', 'c'], 'z'),
    ],
    inputs: ['a', 'b', 'c'].map(value),
    outputs: ['y', 'z'].map(value),
  });
}

// y = -asinh(relu(x)), of which asinh is for the CPU: two partitions, and four slots.
export function interrupted(shape = [4]) {
  return model({
    nodes: [node('Relu', ['x'], 'h'), node('Asinh', ['h'], 'c'), node('Neg', ['c'], 'y')],
    inputs: [float(shape)('x')],
    outputs: [float(shape)('y')],
  });
}

// present = past + x and y = present * x: a step of decoding.
export function step(shape = [4]) {
  return model({
    nodes: [node('Add', ['past', 'x'], 'present'), node('Mul', ['present', 'x'], 'y')],
    inputs: ['past', 'x'].map(float(shape)),
    outputs: ['present', 'y'].map(float(shape)),
  });
}
