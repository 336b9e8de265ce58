// Builder programs: the core's description of a partition, and the graph that is built from it.
import type {Core} from '../src/core.js';
import type {Elements, MLGraph, MLGraphBuilder, MLOperand, MLOperandDataType} from './api.js';
import type {Device} from './device.js';

// An input or output. `coreType` is its ONNX type if the device lacks that.
export interface ProgramValue {
  readonly name: string;
  readonly dataType: MLOperandDataType;
  readonly shape: readonly number[];
  readonly coreType?: MLOperandDataType | 'bool';
}

export interface Program {
  readonly inputs: readonly ProgramValue[];
  // Little-endian bytes in the module's memory.
  readonly constants: ReadonlyArray<{
    readonly dataType: MLOperandDataType;
    readonly shape: readonly number[];
    readonly address: number;
    readonly byteLength: number;
  }>;
  readonly calls: ReadonlyArray<{
    readonly method: string;
    readonly args: readonly unknown[];
    readonly options?: object;
  }>;
  readonly outputs: ReadonlyArray<ProgramValue & {readonly operand: number}>;
}

// A platform that refuses views on shared memory gets a copy.
function addConstant(
  builder: MLGraphBuilder,
  descriptor: {readonly dataType: MLOperandDataType; readonly shape: readonly number[]},
  bytes: Uint8Array,
): MLOperand {
  const add = (data: Elements) => builder.constant(descriptor, data);
  if (bytes.buffer instanceof ArrayBuffer) return add(bytes);
  try {
    return add(bytes);
  } catch {
    return add(bytes.slice());
  }
}

// An argument for the builder, with operands and numbers in place of their descriptions.
function argument(value: unknown, operands: readonly MLOperand[]): unknown {
  if (Array.isArray(value)) return value.map((each) => argument(each, operands));
  if (typeof value !== 'object' || value === null) return value;
  const {operand, number, bigint} = value as Record<string, unknown>;
  if (typeof operand === 'number') return operands[operand];
  if (typeof number === 'string') return Number(number);
  if (typeof bigint === 'string') return BigInt(bigint);
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [name, argument(member, operands)]),
  );
}

// Builds the graph of a program. Its constants must be available.
export function buildProgram(core: Core, device: Device, program: Program): Promise<MLGraph> {
  const builder = device.newBuilder();
  const operands: MLOperand[] = [];
  for (const {name, dataType, shape} of program.inputs) {
    operands.push(builder.input(name, {dataType, shape}));
  }
  for (const {dataType, shape, address, byteLength} of program.constants) {
    operands.push(addConstant(builder, {dataType, shape}, core.bytes(address, byteLength)));
  }
  type Methods = Record<string, (...args: unknown[]) => MLOperand | readonly MLOperand[]>;
  for (const {method, args, options} of program.calls) {
    const passed = args.map((each) => argument(each, operands));
    if (options !== undefined) passed.push(argument(options, operands));
    const results = (builder as unknown as Methods)[method](...passed);
    if (Array.isArray(results)) operands.push(...results);
    else operands.push(results);
  }
  const outputs = program.outputs.map(({name, operand}) => [name, operands[operand]]);
  return builder.build(Object.fromEntries(outputs));
}
