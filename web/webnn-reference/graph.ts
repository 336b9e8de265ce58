// MLGraph: a compiled graph.
import type {ContextState} from './context.js';
import type {Data, Value} from './elements.js';
import type {Node, OperandState} from './operand.js';
import {illegalConstructor, Slots} from './slots.js';
import type {TensorState} from './tensor.js';

export interface GraphState {
  readonly context: ContextState;
  readonly inputs: ReadonlyMap<string, OperandState>;
  readonly outputs: ReadonlyMap<string, OperandState>;
  // In an order in which the inputs of each node are ready.
  readonly nodes: readonly Node[];
  // Copied when the graph is built, because constant tensors may be destroyed later.
  readonly constants: Map<OperandState, Value>;
  isDestroyed: boolean;
  // The tensors of the last dispatch, to recognize another binding.
  bound?: readonly TensorState[];
}

export const graphs = new Slots<MLGraph, GraphState>('MLGraph');

export class MLGraph {
  constructor() {
    illegalConstructor();
  }

  destroy(): void {
    graphs.of(this, 'this').isDestroyed = true;
  }

  get [Symbol.toStringTag](): string {
    return 'MLGraph';
  }
}

// The inputs, constants and nodes that the outputs need.
export function reach(outputs: Iterable<OperandState>): {
  inputs: Map<string, OperandState>;
  constants: OperandState[];
  nodes: Node[];
} {
  const inputs = new Map<string, OperandState>();
  const constants: OperandState[] = [];
  const nodes: Node[] = [];
  const seen = new Set<OperandState | Node>();
  // A path may be as long as the graph is deep, so the walk has its own stack. A node is visited
  // twice: before its inputs and after them.
  const stack: {operand: OperandState; areInputsDone: boolean}[] = [];
  const push = (operand: OperandState) => stack.push({operand, areInputsDone: false});
  Array.from(outputs).reverse().forEach(push);
  for (let top = stack.pop(); top !== undefined; top = stack.pop()) {
    const {operand, areInputsDone} = top;
    if (areInputsDone) {
      if (!seen.has(operand.node!)) nodes.push(operand.node!);
      seen.add(operand.node!);
      continue;
    }
    if (seen.has(operand)) continue;
    seen.add(operand);
    if (operand.name !== undefined) inputs.set(operand.name, operand);
    else if (operand.node === undefined) constants.push(operand);
    else {
      stack.push({operand, areInputsDone: true});
      Object.values(operand.node!.inputs).reverse().forEach(push);
    }
  }
  return {inputs, constants, nodes};
}

// Computes the outputs.
export function execute(
  graph: GraphState,
  feeds: ReadonlyMap<string, Data>,
): ReadonlyMap<string, Data> {
  const values = new Map<OperandState, Value>(graph.constants);
  for (const [name, operand] of graph.inputs) {
    const {dataType, shape} = operand;
    values.set(operand, {dataType, shape, data: feeds.get(name)!});
  }
  for (const node of graph.nodes) {
    const inputs = Object.entries(node.inputs).map(([name, operand]) => [
      name,
      values.get(operand)!,
    ]);
    const results = node.run(Object.fromEntries(inputs) as Record<string, Value>);
    node.outputs.forEach((operand, i) => {
      const {dataType, shape} = operand;
      values.set(operand, {dataType, shape, data: results[i]});
    });
  }
  return new Map(Array.from(graph.outputs, ([name, operand]) => [name, values.get(operand)!.data]));
}
