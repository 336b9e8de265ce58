// Recurrent networks and their single steps.
import type {Draft, Rule} from '../draft.js';
import type {OperandState} from '../operand.js';
import {ACTIVATIONS, gruStep, lstmStep, recurrent, type Activation} from '../kernels/recurrent.js';
import {isDimension} from '../shapes.js';
import {enumeration, sequence, unsigned} from '../webidl.js';

type ActivationName = keyof typeof ACTIVATIONS;
const NAMES = Object.keys(ACTIVATIONS) as ActivationName[];

function activations(draft: Draft, otherwise: ActivationName[]): Activation[] {
  const convert = (item: unknown, what: string) => enumeration(item, NAMES, what);
  const names =
    draft.option('activations', (value, what) => sequence(value, convert, what)) ?? otherwise;
  if (names.length !== otherwise.length) {
    draft.fail('activations', `${otherwise.length} functions`, names.length);
  }
  return names.map((name) => ACTIVATIONS[name]);
}

// Platforms keep both biases in one tensor, so its size must be a valid dimension, too.
function hiddenSizeOf(draft: Draft, value: unknown, gates: number): number {
  const hiddenSize = unsigned(value, draft.what('hiddenSize'));
  if (!isDimension(hiddenSize * gates * 2)) {
    draft.fail('hiddenSize', `a size of which there may be ${gates * 2}`, hiddenSize);
  }
  return hiddenSize;
}

// The parameters of an operator; `directions` is empty for single steps.
function parameters(
  draft: Draft,
  x: OperandState,
  [weight, recurrentWeight]: readonly unknown[],
  directions: readonly number[],
  rows: number,
  hiddenSize: number,
): void {
  const inputSize = x.shape[x.shape.length - 1];
  const given = (name: string, value: unknown, columns: number) =>
    draft.checkShape(name, draft.operand(name, value, x), [...directions, rows, columns]);
  given('weight', weight, inputSize);
  given('recurrentWeight', recurrentWeight, hiddenSize);
  draft.operandOption('bias', x, [...directions, rows]);
  draft.operandOption('recurrentBias', x, [...directions, rows]);
}

function gru(draft: Draft) {
  const functions = activations(draft, ['sigmoid', 'tanh']);
  return gruStep(draft.choice('layout', ['zrn', 'rzn']), draft.flag('resetAfter', true), functions);
}

function lstm(draft: Draft) {
  const functions = activations(draft, ['sigmoid', 'tanh', 'tanh']);
  return lstmStep(draft.choice('layout', ['iofg', 'ifgo']), functions);
}

const NETWORKS = {
  gru: {gates: 3, step: gru, states: ['initialHiddenState']},
  lstm: {gates: 4, step: lstm, states: ['initialHiddenState', 'initialCellState']},
};

function networkRule(name: keyof typeof NETWORKS): Rule {
  const {gates, step, states} = NETWORKS[name];
  return (draft, input, weight, recurrentWeight, stepCount, hiddenValue, options) => {
    draft.options(options);
    const x = draft.operand('input', input);
    const steps = unsigned(stepCount, draft.what('steps'));
    const hiddenSize = hiddenSizeOf(draft, hiddenValue, gates);
    const [length, batches, inputSize] = x.shape;
    if (length !== steps) draft.fail('steps', String(length), steps);
    const direction = draft.choice('direction', ['forward', 'backward', 'both']);
    const directions = direction === 'both' ? 2 : 1;
    parameters(draft, x, [weight, recurrentWeight], [directions], gates * hiddenSize, hiddenSize);
    if (name === 'lstm') draft.operandOption('peepholeWeight', x, [directions, 3 * hiddenSize]);
    const last = [directions, batches, hiddenSize];
    for (const state of states) draft.operandOption(state, x, last);
    const shapes = states.map(() => last);
    if (draft.flag('returnSequence')) shapes.push([steps, ...last]);
    const network = {
      step: step(draft),
      states,
      steps,
      batches,
      inputSize,
      hiddenSize,
      direction,
    };
    const {dataType} = x;
    return draft.outputs(
      shapes.map((shape) => ({dataType, shape})),
      recurrent(network),
    );
  };
}

// A network of one step, whose states are arguments.
const CELLS = {
  gruCell: {gates: 3, step: gru, states: ['hiddenState']},
  lstmCell: {gates: 4, step: lstm, states: ['hiddenState', 'cellState']},
};

function cellRule(name: keyof typeof CELLS): Rule {
  const {gates, step, states} = CELLS[name];
  return (draft, input, weight, recurrentWeight, ...rest) => {
    const [hiddenValue, options] = rest.slice(states.length);
    draft.options(options);
    const x = draft.operand('input', input);
    const hiddenSize = hiddenSizeOf(draft, hiddenValue, gates);
    const [batches, inputSize] = x.shape;
    parameters(draft, x, [weight, recurrentWeight], [], gates * hiddenSize, hiddenSize);
    if (name === 'lstmCell') draft.operandOption('peepholeWeight', x, [3 * hiddenSize]);
    const shape = [batches, hiddenSize];
    states.forEach((state, i) => {
      draft.checkShape(state, draft.operand(state, rest[i], x), shape);
    });
    const network = {
      step: step(draft),
      states,
      steps: 1,
      batches,
      inputSize,
      hiddenSize,
      direction: 'forward' as const,
    };
    const {dataType} = x;
    const outputs = draft.outputs(
      states.map(() => ({dataType, shape})),
      recurrent(network),
    );
    return name === 'gruCell' ? outputs[0] : outputs;
  };
}

export const recurrentRules = {
  gru: networkRule('gru'),
  gruCell: cellRule('gruCell'),
  lstm: networkRule('lstm'),
  lstmCell: cellRule('lstmCell'),
} satisfies Record<string, Rule>;
