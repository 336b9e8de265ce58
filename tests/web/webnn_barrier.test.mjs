// Runs of the core that return at partitions, by the module's own exports: a program is replayed on
// the reference of WebNN. Requirements: web (WB-n).
import assert from 'node:assert/strict';
import test from 'node:test';

import {model} from './model.mjs';
import {load} from './package.mjs';

const {loadCore} = await load('core');
const {createML, MLGraphBuilder} = await load('../webnn-reference/index');
const context = await createML().createContext();
const core = await loadCore();

const FLOAT = 1;
const SLOT_BYTES = 24 + 32 * 8;

const view = () => new DataView(core.memory.buffer);
const word = (address) => view().getUint32(address, true);

function text(value) {
  const bytes = new TextEncoder().encode(`${value}\0`);
  const address = core.allocate('a test', bytes.length);
  core.bytes(address, bytes.length).set(bytes);
  return address;
}

function readSlot(address) {
  const [used, type, rank, byteSize, data] = [0, 4, 8, 12, 16].map((at) => word(address + at));
  const dims = Array.from({length: rank}, (_, i) => view().getFloat64(address + 24 + 8 * i, true));
  return {used, type, dims, byteSize, data};
}

function writeSlot(address, {type, dims, byteSize, data}) {
  [1, type, dims.length, byteSize, data].forEach((value, i) =>
    view().setUint32(address + 4 * i, value, true),
  );
  dims.forEach((dim, i) => view().setFloat64(address + 24 + 8 * i, dim, true));
}

const floats = (slot) => [...new Float32Array(core.memory.buffer, slot.data, slot.byteSize / 4)];

function open(bytes, limits = context.opSupportLimits(), excluded = '') {
  const options = core.make('a test', 'tenon_session_options_create');
  core.check('WebNN', 'tenon_session_options_webnn', options, text(JSON.stringify(limits)), text(excluded));
  const address = core.allocate('a test', bytes.length);
  core.bytes(address, bytes.length).set(bytes);
  const out = core.allocate('a test', 4);
  core.check('create', 'tenon_session_create', address, bytes.length, options, out);
  return word(out);
}

const describe = (session) => JSON.parse(core.text(core.call('tenon_session_describe', session)));
const programOf = (session, partition) =>
  JSON.parse(core.text(core.call('tenon_session_program', session, partition)));

// Makes the graph of a program, and runs it once.
async function compute(program, inputs) {
  const builder = new MLGraphBuilder(context);
  const operands = [
    ...program.inputs.map((input) => builder.input(input.name, input)),
    ...program.constants.map((constant) =>
      builder.constant(constant, core.bytes(constant.address, constant.byteLength).slice().buffer),
    ),
  ];
  const value = (argument) => {
    if (Array.isArray(argument)) return argument.map(value);
    if (typeof argument !== 'object') return argument;
    if ('number' in argument) return Number(argument.number);
    return operands[argument.operand];
  };
  for (const {method, args, options, results} of program.calls) {
    const given = Object.entries(options ?? {}).map(([name, each]) => [name, value(each)]);
    const made = builder[method](...args.map(value), Object.fromEntries(given));
    operands.push(...[made].flat());
    assert.equal([made].flat().length, results);
  }
  const graph = await builder.build(
    Object.fromEntries(program.outputs.map(({name, operand}) => [name, operands[operand]])),
  );
  const tensors = async (list, flags) =>
    Object.fromEntries(
      await Promise.all(
        list.map(async (each) => [each.name, await context.createTensor({...each, ...flags})]),
      ),
    );
  const from = await tensors(program.inputs, {writable: true});
  const into = await tensors(program.outputs, {readable: true});
  for (const [name, tensor] of Object.entries(from)) {
    context.writeTensor(tensor, Float32Array.from(inputs[name]));
  }
  context.dispatch(graph, from, into);
  const entries = Object.entries(into).map(async ([name, tensor]) => [
    name,
    [...new Float32Array(await context.readTensor(tensor))],
  ]);
  return Object.fromEntries(await Promise.all(entries));
}

const float = (name) => ({name, type: 'float32', shape: [2, 2]});

// [Relu] -> Hardmax, which WebNN does not have -> [Exp, Add]
const chain = () =>
  model({
    nodes: [
      {op: 'Relu', inputs: ['x'], outputs: ['a'], name: 'first'},
      {op: 'Hardmax', inputs: ['a'], outputs: ['h']},
      {op: 'Exp', inputs: ['h'], outputs: ['e']},
      {op: 'Add', inputs: ['e', 'a'], outputs: ['y']},
    ],
    inputs: [float('x')],
    outputs: [float('y'), float('h')],
  });

const X = [-1, 2, 3, -4];

// Runs the chain with WebNN, to its end; what y and h are.
async function run(session) {
  const {partitions} = describe(session);
  const inputs = core.call('tenon_session_inputs', session);
  const outputs = core.call('tenon_session_outputs', session);
  writeSlot(inputs, {type: FLOAT, dims: [2, 2], byteSize: 16, data: 0});
  view().setUint32(outputs + SLOT_BYTES, 1, true); // h
  core.check('begin', 'tenon_session_begin_run', session, 0);
  const values = {};
  const fetched = {};
  for (;;) {
    core.check('next', 'tenon_session_next', session);
    const barrier = core.call('tenon_session_barrier', session);
    if (barrier === 0) break;
    const [partition, inputCount, outputCount, inputSlots, outputSlots] = [0, 4, 8, 12, 16].map(
      (at) => word(barrier + at),
    );
    const {inputs: sources, outputs: targets} = partitions[partition];
    assert.deepEqual([inputCount, outputCount], [sources.length, targets.length]);
    sources.forEach(({name, source}, i) => {
      const slot = readSlot(inputSlots + i * SLOT_BYTES);
      assert.deepEqual([slot.type, slot.dims], [FLOAT, [2, 2]]);
      assert.equal(slot.data !== 0, source === 'host');
      if (source === 'host') values[name] = floats(slot);
      else if ('feed' in source) values[name] = X;
      else values[name] = values[partitions[source.partition].outputs[source.output].name];
    });
    const made = await compute(programOf(session, partition), values);
    targets.forEach(({name, host, fetches}, i) => {
      const slot = readSlot(outputSlots + i * SLOT_BYTES);
      assert.equal(slot.data !== 0, host);
      values[name] = made[name];
      if (host) new Float32Array(core.memory.buffer, slot.data, 4).set(made[name]);
      for (const fetch of fetches) fetched[fetch] = made[name];
    });
  }
  fetched.h = floats(readSlot(outputs + SLOT_BYTES));
  core.call('tenon_session_finish_run', session);
  return fetched;
}

const expected = {h: [0, 1, 1, 0], y: [1, Math.E + 2, Math.E + 3, 1]};

function near(got) {
  for (const [name, values] of Object.entries(expected)) {
    values.forEach((value, i) => assert.ok(Math.abs(value - got[name][i]) < 1e-5, `${name}[${i}]`));
  }
}

// WB-30, WB-31, WB-53
test('returns at each partition, and goes on with what it is given', async () => {
  const session = open(chain());
  const {partitions, hostFeeds} = describe(session);
  assert.deepEqual(hostFeeds, []);
  assert.deepEqual(
    partitions.map(({firstNode, nodes, isStatic}) => [firstNode, nodes, isStatic]),
    [
      ['first', 1, true],
      [partitions[1].firstNode, 2, true],
    ],
  );
  for (let i = 0; i < 3; ++i) near(await run(session));
  core.call('tenon_session_release', session);
});

test('leaves runs where they stand', async () => {
  const session = open(chain());
  const inputs = core.call('tenon_session_inputs', session);
  for (let steps = 0; steps < 2; ++steps) {
    writeSlot(inputs, {type: FLOAT, dims: [2, 2], byteSize: 16, data: 0});
    core.check('begin', 'tenon_session_begin_run', session, 0);
    for (let i = 0; i < steps; ++i) core.check('next', 'tenon_session_next', session);
    core.call('tenon_session_finish_run', session);
    assert.equal(core.call('tenon_session_barrier', session), 0);
  }
  writeSlot(inputs, {type: FLOAT, dims: [2, 3], byteSize: 24, data: 0});
  assert.throws(() => core.check('begin', 'tenon_session_begin_run', session, 0), {code: 2});
  core.call('tenon_session_finish_run', session);
  near(await run(session));
  core.call('tenon_session_release', session);
});

// WB-51
test('keeps nodes on the CPU that it is told to', async () => {
  const session = open(chain(), undefined, 'first');
  assert.equal(describe(session).partitions.length, 1);
  core.call('tenon_session_release', session);
});

// WB-34
test('lets go of constants', async () => {
  const session = open(chain());
  core.check('release', 'tenon_session_release_constants', session);
  assert.equal(core.call('tenon_session_program', session, 0), 0);
  assert.match(core.text(core.call('tenon_last_error')), /constants .* were released/);
  core.call('tenon_session_release', session);
});

test('says what limits are no limits', () => {
  assert.throws(() => open(chain(), []), {code: 2, message: /opSupportLimits/});
});
