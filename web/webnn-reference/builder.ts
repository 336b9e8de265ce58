// MLGraphBuilder: inputs, constants, the operators of ./rules, and the compilation of a graph.
import {
  checkDescriptor,
  contexts,
  invalidState,
  onTimeline,
  type ContextState,
  type MLContext,
} from './context.js';
import {Draft, type Rule} from './draft.js';
import {
  castNumber,
  decode,
  scalarOf,
  type Data,
  type Descriptor,
  type MLOperandDataType,
} from './elements.js';
import {graphs, MLGraph, reach, type GraphState} from './graph.js';
import {OPERATOR_NAMES} from './limits.js';
import {MLOperand, operands, type OperandState} from './operand.js';
import type {MLNumber, MLOperators} from './operators.js';
import {rules} from './rules/index.js';
import {Slots} from './slots.js';
import {
  isGone,
  tensors,
  type MLOperandDescriptor,
  type MLTensor,
  type TensorState,
} from './tensor.js';
import {bytesFor, dataType, descriptor, dictionary, numeric, type BufferSource} from './webidl.js';

export type MLNamedOperands = Record<string, MLOperand>;

interface BuilderState {
  readonly context: ContextState;
  readonly inputNames: Set<string>;
  hasBuilt: boolean;
}

const builders = new Slots<MLGraphBuilder, BuilderState>('MLGraphBuilder');

// The slots of a builder that can still build.
function open(builder: MLGraphBuilder): BuilderState {
  const state = builders.of(builder, 'this');
  if (state.hasBuilt) throw invalidState('the builder has built a graph');
  if (state.context.isLost) throw invalidState('the context is lost');
  return state;
}

function operand(
  builder: MLGraphBuilder,
  {dataType, shape}: Descriptor,
  source: {name?: string; constant?: Data; constantTensor?: TensorState},
): MLOperand {
  return operands.create(MLOperand.prototype, {dataType, shape, builder, ...source});
}

function tensorConstant(builder: MLGraphBuilder, value: unknown): MLOperand {
  const tensor = tensors.of(value, 'tensor');
  const {context} = builders.of(builder, 'this');
  if (tensor.context !== context) throw new TypeError('tensor: it is of another context');
  if (isGone(tensor)) throw new TypeError('tensor: it is destroyed');
  if (!tensor.constant) throw new TypeError('tensor: it is not constant');
  open(builder);
  return operand(builder, tensor.descriptor, {constantTensor: tensor});
}

function bufferConstant(builder: MLGraphBuilder, options: unknown, buffer: unknown): MLOperand {
  const {context} = open(builder);
  const expected = descriptor(options, 'descriptor');
  checkDescriptor(expected, context, context.device.limits.constant, 'descriptor');
  const bytes = bytesFor(expected, buffer, 'buffer').slice();
  return operand(builder, expected, {constant: decode(bytes, expected.dataType)});
}

function scalarConstant(builder: MLGraphBuilder, type: unknown, value: unknown): MLOperand {
  const {context} = open(builder);
  const expected = {dataType: dataType(type, 'dataType'), shape: Object.freeze([])};
  checkDescriptor(expected, context, context.device.limits.constant, 'constant');
  const data = scalarOf(castNumber(numeric(value), expected.dataType), expected.dataType);
  return operand(builder, expected, {constant: data});
}

// The outputs of `build`, which are results of operators of this builder.
function checkOutputs(
  builder: MLGraphBuilder,
  {context}: BuilderState,
  outputs: unknown,
): Map<string, OperandState> {
  const named = Object.entries(dictionary(outputs, 'outputs'));
  if (named.length === 0) throw new TypeError('outputs: there are none');
  return new Map(
    named.map(([name, value]) => {
      if (name === '') throw new TypeError('outputs: a name is empty');
      const what = `outputs.${name}`;
      const output = operands.of(value, what);
      if (output.builder !== builder) throw new TypeError(`${what}: it is of another builder`);
      if (output.node === undefined) throw new TypeError(`${what}: it is an input or a constant`);
      checkDescriptor(output, context, context.device.limits.output, what);
      return [name, output];
    }),
  );
}

// The methods of MLOperators are defined below, from the rules.
export interface MLGraphBuilder extends MLOperators {}

export class MLGraphBuilder {
  constructor(context: MLContext) {
    const state = contexts.of(context, 'context');
    if (state.isLost) throw invalidState('the context is lost');
    builders.attach(this, {context: state, inputNames: new Set(), hasBuilt: false});
  }

  input(name: string, options: MLOperandDescriptor): MLOperand {
    const {context, inputNames} = open(this);
    const key = String(name);
    const expected = descriptor(options, 'descriptor');
    if (key === '') throw new TypeError('name: it is empty');
    if (inputNames.has(key)) throw new TypeError(`name: '${key}' is taken`);
    checkDescriptor(expected, context, context.device.limits.input, 'descriptor');
    inputNames.add(key);
    return operand(this, expected, {name: key});
  }

  constant(tensor: MLTensor): MLOperand;
  constant(descriptor: MLOperandDescriptor, buffer: BufferSource): MLOperand;
  constant(dataType: MLOperandDataType, value: MLNumber): MLOperand;
  constant(
    ...args:
      | [tensor: MLTensor]
      | [descriptor: MLOperandDescriptor, buffer: BufferSource]
      | [dataType: MLOperandDataType, value: MLNumber]
  ): MLOperand {
    if (args.length < 2) return tensorConstant(this, args[0]);
    if (typeof args[0] === 'object') return bufferConstant(this, args[0], args[1]);
    return scalarConstant(this, args[0], args[1]);
  }

  async build(outputs: MLNamedOperands): Promise<MLGraph> {
    const state = open(this);
    const {context} = state;
    const named = checkOutputs(this, state, outputs);
    const {inputs, constants, nodes} = reach(named.values());
    // The draft requires this only of outputs, which cannot be constants.
    if (constants.some(({constantTensor}) => constantTensor?.isDestroyed)) {
      throw new TypeError('outputs: a constant tensor is destroyed');
    }
    state.hasBuilt = true;
    const graph: GraphState = {
      context,
      inputs,
      outputs: named,
      nodes,
      constants: new Map(),
      isDestroyed: false,
    };
    return onTimeline(context, () => {
      if (context.device.fails('build')) {
        throw new DOMException('the device cannot compile the graph', 'OperationError');
      }
      for (const constant of constants) {
        const {dataType, shape, constantTensor} = constant;
        const data = constant.constant ?? decode(constantTensor!.bytes!, dataType);
        graph.constants.set(constant, {dataType, shape, data});
      }
      return graphs.create(MLGraph.prototype, graph);
    });
  }

  get [Symbol.toStringTag](): string {
    return 'MLGraphBuilder';
  }
}

for (const name of OPERATOR_NAMES) {
  const rule: Rule = rules[name];
  const method = {
    [name](this: MLGraphBuilder, ...args: unknown[]) {
      const {context} = open(this);
      return rule(new Draft(name, this, context), ...args);
    },
  }[name];
  Object.defineProperty(MLGraphBuilder.prototype, name, {
    value: method,
    configurable: true,
    enumerable: true,
    writable: true,
  });
}
