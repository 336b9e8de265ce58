// MLOperand, and the nodes of the graph under construction that produce them.
import type {Data, Descriptor, MLOperandDataType, Shape, Value} from './elements.js';
import {illegalConstructor, Slots} from './slots.js';
import type {TensorState} from './tensor.js';

// The operands of an operator by name; several operands of one name have a number after it.
export type Inputs = Readonly<Record<string, Value>>;

export interface Node {
  readonly inputs: Readonly<Record<string, OperandState>>;
  readonly outputs: readonly OperandState[];
  run(inputs: Inputs): Data[];
}

export interface OperandState extends Descriptor {
  readonly builder: object;
  // One of these is the operand's source.
  readonly name?: string;
  readonly constant?: Data;
  readonly constantTensor?: TensorState;
  node?: Node;
}

export const operands = new Slots<MLOperand, OperandState>('MLOperand');

export class MLOperand {
  constructor() {
    illegalConstructor();
  }

  get dataType(): MLOperandDataType {
    return operands.of(this, 'this').dataType;
  }

  get shape(): Shape {
    return operands.of(this, 'this').shape;
  }

  get [Symbol.toStringTag](): string {
    return 'MLOperand';
  }
}
