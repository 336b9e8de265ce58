// Recurrent networks. States stay in double from the first step to the last one.
import type {Kernel} from '../draft.js';
import {floats, numbersOf, type Value} from '../elements.js';
import {relu, sigmoid} from './functions.js';

export const ACTIVATIONS = {relu, sigmoid, tanh: Math.tanh};
export type Activation = (x: number) => number;

type Vector = ArrayLike<number>;

// The parameters of one direction; a missing bias is 0.
interface Cell {
  hiddenSize: number;
  inputSize: number;
  weight: Vector;
  recurrentWeight: Vector;
  bias: Vector | undefined;
  recurrentBias: Vector | undefined;
  peepholeWeight: Vector | undefined;
}

function dot(matrix: Vector, row: number, size: number, vector: Vector): number {
  let sum = 0;
  for (let i = 0; i < size; ++i) sum += matrix[row * size + i] * vector[i];
  return sum;
}

const fromInput = (cell: Cell, row: number, x: Vector) =>
  dot(cell.weight, row, cell.inputSize, x) + (cell.bias?.[row] ?? 0);
const fromHidden = (cell: Cell, row: number, hidden: Vector) =>
  dot(cell.recurrentWeight, row, cell.hiddenSize, hidden) + (cell.recurrentBias?.[row] ?? 0);

// A step of one sequence: [hidden] or [hidden, cell], before and after.
type Step = (cell: Cell, x: Vector, state: readonly Vector[]) => number[][];

export function gruStep(
  layout: string,
  resetAfter: boolean,
  [gate, candidate]: readonly Activation[],
): Step {
  const [update, reset, fresh] = ['z', 'r', 'n'].map((letter) => layout.indexOf(letter));
  return (cell, x, [hidden]) => {
    const {hiddenSize} = cell;
    const units = Array.from({length: hiddenSize}, (_, i) => i);
    const open = (index: number) =>
      units.map((i) => {
        const row = index * hiddenSize + i;
        return gate(fromInput(cell, row, x) + fromHidden(cell, row, hidden));
      });
    const z = open(update);
    const r = open(reset);
    const resetHidden = units.map((i) => r[i] * hidden[i]);
    const n = units.map((i) => {
      const row = fresh * hiddenSize + i;
      const past = resetAfter
        ? r[i] * fromHidden(cell, row, hidden)
        : fromHidden(cell, row, resetHidden);
      return candidate(fromInput(cell, row, x) + past);
    });
    return [units.map((i) => z[i] * hidden[i] + (1 - z[i]) * n[i])];
  };
}

// All peepholes use the cell before the step, as in the draft's decomposition. (In ONNX, the
// peephole of the output gate uses the cell after the step.)
export function lstmStep(layout: string, [gate, candidate, filter]: readonly Activation[]): Step {
  const [input, output, forget, fresh] = ['i', 'o', 'f', 'g'].map((x) => layout.indexOf(x));
  const PEEPHOLES = 'iof';
  return (cell, x, [hidden, memory]) => {
    const {hiddenSize} = cell;
    const units = Array.from({length: hiddenSize}, (_, i) => i);
    const sums = (index: number) =>
      units.map((i) => {
        const row = index * hiddenSize + i;
        const peephole = PEEPHOLES.indexOf(layout[index]) * hiddenSize + i;
        const seen = index === fresh ? 0 : memory[i] * (cell.peepholeWeight?.[peephole] ?? 0);
        return fromInput(cell, row, x) + fromHidden(cell, row, hidden) + seen;
      });
    const i = sums(input).map(gate);
    const o = sums(output).map(gate);
    const f = sums(forget).map(gate);
    const g = sums(fresh).map(candidate);
    const next = units.map((j) => f[j] * memory[j] + i[j] * g[j]);
    return [units.map((j) => o[j] * filter(next[j])), next];
  };
}

function part(value: Value | undefined, index: number, count: number): Vector | undefined {
  if (value === undefined) return undefined;
  const x = numbersOf(value);
  const size = x.length / count;
  return x.subarray(index * size, (index + 1) * size);
}

export interface Network {
  step: Step;
  // The operands of the initial states, one or two.
  states: readonly string[];
  steps: number;
  batches: number;
  inputSize: number;
  hiddenSize: number;
  direction: 'forward' | 'backward' | 'both';
}

// The last states and, if there is one more output, the first state of every step.
export function recurrent(network: Network): Kernel {
  const {step, states, steps, batches, inputSize, hiddenSize, direction} = network;
  const directions = direction === 'both' ? 2 : 1;
  return (inputs: Record<string, Value | undefined>, outputs) => {
    const x = numbersOf(inputs.input!);
    const size = batches * hiddenSize;
    const last = states.map(() => new Float64Array(directions * size));
    const all = new Float64Array(steps * directions * size);
    for (let d = 0; d < directions; ++d) {
      const operand = (name: string) => part(inputs[name], d, directions);
      const cell: Cell = {
        hiddenSize,
        inputSize,
        weight: operand('weight')!,
        recurrentWeight: operand('recurrentWeight')!,
        bias: operand('bias'),
        recurrentBias: operand('recurrentBias'),
        peepholeWeight: operand('peepholeWeight'),
      };
      const isBackward = d === 1 || direction === 'backward';
      for (let batch = 0; batch < batches; ++batch) {
        const initial = (name: string) =>
          part(inputs[name], d * batches + batch, directions * batches);
        let state: Vector[] = states.map((name) => initial(name) ?? new Float64Array(hiddenSize));
        for (let i = 0; i < steps; ++i) {
          const time = isBackward ? steps - 1 - i : i;
          const begin = (time * batches + batch) * inputSize;
          state = step(cell, x.subarray(begin, begin + inputSize), state);
          all.set(state[0], ((time * directions + d) * batches + batch) * hiddenSize);
        }
        state.forEach((vector, i) => last[i].set(vector, (d * batches + batch) * hiddenSize));
      }
    }
    const results = [...last, all].slice(0, outputs.length);
    return results.map((result, i) => floats(outputs[i].dataType, result.length, (j) => result[j]));
  };
}
