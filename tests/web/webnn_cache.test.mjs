// The WebNN provider keeps its MLTensors, and binds the same ones every time: numbers are exact.
// Requirements: web (WB-n); (a) to (k) are those of WB-104.
import assert from 'node:assert/strict';
import test from 'node:test';

import {printed} from './package.mjs';
import {
  arithmetic,
  collected,
  create,
  env,
  floats,
  interrupted,
  loadCore,
  reference,
  step,
  Tensor,
  withWebNN,
} from './webnn_session.mjs';

const DIMS = [2, 3];
const SIX = [1, 2, 3, 4, 5, 6];
const values = (scale) => SIX.map((value) => value * scale);
const feedsOf = (scale = 1) => ({
  a: floats(values(scale), DIMS),
  b: floats(values(2 * scale), DIMS),
  c: floats(values(3 * scale), DIMS),
});
const expectedY = (scale) => SIX.map((value) => 9 * value * value * scale * scale);
const Z = [0, 0, 0, 0, 0, 0];

function counts({created, destroyed, rebinds, dispatches, reads, writes}) {
  return {created, destroyed, rebinds, dispatches: dispatches.length, reads, writes};
}

const asinh = (xs) => xs.map((x) => -Math.asinh(Math.max(0, x)));
function assertClose(got, expected, what) {
  assert.equal(got.length, expected.length);
  for (let i = 0; i < got.length; ++i) {
    assert.ok(Math.abs(got[i] - expected[i]) < 1e-5, `${what ?? ''} ${[...got]} / ${expected}`);
  }
}

// WB-27, WB-67, WB-68, WB-69, WB-74, WB-83, WB-84, WB-104 (a)
test('(a) binds the same tensors in every run of a static model', async (t) => {
  const webnn = withWebNN(t);
  const before = env.tenon.stats().total;
  const session = await create(arithmetic(), {logId: 'arithmetic'});
  assert.equal(webnn.created, 0);
  for (let run = 1; run <= 1000; ++run) {
    const {y, z} = await session.run(feedsOf(run % 200)); // squares of which floats hold
    if (run % 99 === 1) {
      assert.deepEqual([...y.data], expectedY(run % 200));
      assert.deepEqual([...z.data], Z);
    }
  }
  assert.deepEqual(counts(webnn), {
    created: 5, destroyed: 0, rebinds: 0, dispatches: 1000, reads: 2000, writes: 3000,
  });
  assert.equal(webnn.signatures(), 1);
  const {buildMilliseconds, ...mine} = env.tenon.stats().sessions.at(-1);
  assert.ok(buildMilliseconds > 0);
  assert.deepEqual(mine, {
    logId: 'arithmetic', created: 5, destroyed: 0, live: 5, liveBytes: 120, reused: 4995,
    rebinds: 0, dispatches: 1000, writes: 3000, writeBytes: 72000, reads: 2000, readBytes: 48000,
    builds: 1,
  });
  assert.equal(webnn.writeBytes, 72000);
  assert.equal(webnn.readBytes, 48000);
  await session.release();
  assert.equal(webnn.live, 0);
  const {total, sessions} = env.tenon.stats();
  assert.ok(!sessions.some(({logId}) => logId === 'arithmetic'));
  assert.equal(total.created - before.created, 5);
  assert.equal(total.live, before.live);
  assert.equal(total.liveBytes, before.liveBytes);
});

// WB-63, WB-70, WB-73, WB-104 (b)
test('(b) does so around a node on the CPU', async (t) => {
  const webnn = withWebNN(t);
  const uses = [];
  const {ml} = globalThis.navigator;
  const {createContext} = ml;
  t.mock.method(ml, 'createContext', async (options) => {
    const context = await createContext(options);
    const {createTensor} = context;
    t.mock.method(context, 'createTensor', (descriptor) => {
      uses.push(`${+descriptor.readable}${+descriptor.writable}`);
      return createTensor(descriptor);
    });
    return context;
  });
  const session = await create(interrupted());
  for (let run = 1; run <= 1000; ++run) {
    const x = [-1, 0, run, run + 0.5];
    const {y} = await session.run({x: floats(x)});
    if (run % 100 === 1) assertClose(y.data, asinh(x));
  }
  assert.deepEqual(counts(webnn), {
    created: 4, destroyed: 0, rebinds: 0, dispatches: 2000, reads: 2000, writes: 2000,
  });
  assert.equal(webnn.signatures(), 2);
  assert.deepEqual(uses, ['01', '10', '01', '10']);
  await session.release();
  assert.equal(webnn.live, 0);
});

// WB-65, WB-69, WB-71, WB-104 (c)
test('(c) does so whatever the order of feeds and the choice of fetches', async (t) => {
  const webnn = withWebNN(t);
  const session = await create(arithmetic());
  const orders = ['abc', 'acb', 'bac', 'bca', 'cab', 'cba'];
  const choices = [['y'], ['z'], ['z', 'y'], ['y', 'z']];
  let reads = 0;
  for (let run = 0; run < 200; ++run) {
    const feeds = feedsOf(run);
    const shuffled = Object.fromEntries([...orders[run % 6]].map((name) => [name, feeds[name]]));
    const names = choices[run % 4];
    const results = await session.run(shuffled, names);
    assert.deepEqual(Object.keys(results), names);
    if (results.y) assert.deepEqual([...results.y.data], expectedY(run));
    if (results.z) assert.deepEqual([...results.z.data], Z);
    reads += names.length;
  }
  assert.deepEqual(counts(webnn), {
    created: 5, destroyed: 0, rebinds: 0, dispatches: 200, reads, writes: 600,
  });
  assert.equal(webnn.signatures(), 1);
  await session.release();
});

// WB-72, WB-74, WB-75, WB-85, WB-104 (d)
test('(d) lends outputs, and takes them back', async (t) => {
  const webnn = withWebNN(t);
  const session = await create(arithmetic(), {preferredOutputLocation: {y: 'ml-tensor'}});
  for (let run = 0; run < 50; ++run) {
    const {y, z} = await session.run(feedsOf(run));
    assert.equal(y.location, 'ml-tensor');
    assert.equal(z.location, 'cpu');
    y.dispose();
    assert.throws(() => y.mlTensor, /disposed/);
  }
  assert.equal(webnn.created, 5);
  assert.equal(webnn.rebinds, 0);
  assert.equal(webnn.reads, 50); // of z
  const kept = [];
  for (let run = 1; run <= 10; ++run) kept.push((await session.run(feedsOf(run))).y);
  assert.equal(webnn.created, 5 + 9);
  assert.equal(new Set(kept.map(({mlTensor}) => mlTensor)).size, 10);
  assert.deepEqual([...(await kept[3].getData())], expectedY(4));
  assert.equal(kept[3].location, 'cpu');
  kept[4].dispose();
  kept[4].dispose();
  assert.equal(webnn.destroyed, 0);
  const {y} = await session.run(feedsOf(11)); // in the tensor of kept[4]
  assert.equal(webnn.created, 14);
  y.dispose();
  await session.release();
  // The tensors of kept are lent, except that of kept[4]. Their contents are still there.
  assert.equal(webnn.live, 9);
  assert.deepEqual([...(await kept[0].getData(true))], expectedY(1));
  assert.equal(webnn.live, 8);
  for (const tensor of kept) tensor.dispose();
  assert.equal(webnn.live, 0);
});

// WB-75
test('(d) destroys lent tensors that are dropped', async (t) => {
  const webnn = withWebNN(t);
  const session = await create(arithmetic(), {preferredOutputLocation: 'ml-tensor'});
  await (async () => {
    await session.run(feedsOf());
  })();
  assert.equal(webnn.live, 5);
  await collected(() => webnn.live === 3);
  assert.equal(webnn.live, 3);
  await session.release();
  assert.equal(webnn.live, 0);
});

// WB-80, WB-104 (e)
test('(e) alternates between two tensors where outputs become feeds', async (t) => {
  const webnn = withWebNN(t);
  const session = await create(step(), {preferredOutputLocation: {present: 'ml-tensor'}});
  const x = floats([1, 2, 3, 4]);
  let past = floats([0, 0, 0, 0]);
  for (let run = 1; run <= 100; ++run) {
    const {present, y} = await session.run({past, x});
    past.dispose();
    past = present;
    assert.deepEqual([...y.data], [1, 4, 9, 16].map((square) => square * run));
  }
  // Those of x and y, and the pair.
  assert.equal(webnn.created, 4);
  assert.equal(webnn.signatures(), 2);
  assert.equal(webnn.writes, 101);
  assert.equal(webnn.reads, 100); // of y
  assert.deepEqual([...(await past.getData(true))], [100, 200, 300, 400]);
  // A second sequence has the same tensors.
  const {present} = await session.run({past: floats([5, 5, 5, 5]), x});
  const next = await session.run({past: present, x});
  present.dispose();
  next.present.dispose();
  assert.equal(webnn.created, 4);
  await session.release();
  assert.equal(webnn.live, 0);
});

async function userTensor(context, data, {readable = true, writable = true} = {}) {
  const shape = DIMS;
  const tensor = await context.createTensor({dataType: 'float32', shape, readable, writable});
  if (writable) context.writeTensor(tensor, Float32Array.from(data));
  return tensor;
}

async function contentOf(context, tensor) {
  return [...new Float32Array(await context.readTensor(tensor))];
}

const wrap = (tensor, dims = DIMS) => Tensor.fromMLTensor(tensor, {dataType: 'float32', dims});

async function ownContext(t, options) {
  withWebNN(t, options);
  const context = await globalThis.navigator.ml.createContext();
  return {context, provider: {name: 'webnn', context}};
}

// WB-46, WB-76, WB-86, WB-104 (f)
test('(f) binds tensors of the application, and leaves them alone', async (t) => {
  const {context, provider} = await ownContext(t);
  const a = await userTensor(context, values(1), {readable: false});
  const b = await userTensor(context, values(2));
  const y = await userTensor(context, Z, {writable: false});
  const webnn = reference.instrument(context);
  const session = await create(arithmetic(), {}, provider);
  const given = wrap(y);
  for (let run = 0; run < 10; ++run) {
    const results = await session.run(
      {a: wrap(a), b: wrap(b), c: floats(values(3), DIMS)},
      {y: given, z: null},
    );
    assert.equal(results.y, given);
    assert.deepEqual([...results.z.data], Z);
  }
  assert.equal(webnn.created, 2); // those of c and z
  assert.equal(webnn.writes, 10);
  assert.equal(webnn.reads, 10);
  assert.equal(webnn.signatures(), 1);
  await session.release();
  assert.equal(webnn.live, 0);
  assert.deepEqual(await contentOf(context, b), values(2));
  assert.deepEqual(await contentOf(context, y), expectedY(1));
  assert.equal(webnn.contexts, 1);
});

// WB-77, WB-104 (f)
test('(f) takes one tensor for several names', async (t) => {
  const {context, provider} = await ownContext(t);
  const session = await create(arithmetic(), {}, provider);
  for (const access of [{}, {readable: false}, {writable: true, readable: false}]) {
    const tensor = await userTensor(context, SIX, access);
    const {y, z} = await session.run({a: wrap(tensor), b: wrap(tensor), c: wrap(tensor)});
    assert.deepEqual([...y.data], SIX.map((value) => 2 * value * value));
    assert.deepEqual([...z.data], SIX);
  }
  const tensor = await userTensor(context, SIX);
  const feeds = {a: wrap(tensor), b: wrap(tensor), c: floats(SIX, DIMS)};
  const {y} = await session.run(feeds, {y: wrap(tensor)});
  assert.equal(y.mlTensor, tensor);
  assert.deepEqual(await contentOf(context, tensor), SIX.map((value) => 2 * value * value));
  await session.release();
});

// WB-86, WB-87
test('(f) says what is wrong with a tensor of the application', async (t) => {
  const {context, provider} = await ownContext(t);
  const session = await create(arithmetic(['n', 3]), {}, provider);
  const square = await context.createTensor({dataType: 'float32', shape: [3, 2], writable: true});
  const {a, b, c} = feedsOf();
  await assert.rejects(
    session.run({a: wrap(square), b, c}),
    /input 'a': expected an MLTensor of float32 \[2, 3\], got float32 \[3, 2\]/,
  );
  await assert.rejects(
    session.run({a, b, c}, {y: wrap(square)}),
    /output 'y': expected an MLTensor of float32 \[2, 3\], got float32 \[3, 2\]/,
  );
  await assert.rejects(session.run({a, b, c}, {y: floats(SIX, [3, 2])}), /'y'/);
  const foreign = await create(arithmetic(), {preferredOutputLocation: 'ml-tensor'});
  const lent = await foreign.run(feedsOf());
  await assert.rejects(session.run({a: lent.y, b, c}), /'a': its MLTensor is of another context/);
  const other = await globalThis.navigator.ml.createContext();
  await assert.rejects(session.run({a: wrap(await userTensor(other, SIX)), b, c}), /context/);
  assert.deepEqual([...(await session.run({a, b, c})).y.data], expectedY(1));
  lent.y.dispose();
  lent.z.dispose();
  await Promise.all([session.release(), foreign.release()]);
});

// WB-8, WB-12, WB-46, WB-82, WB-104 (g)
test('(g) queues runs of a session, and shares a context', async (t) => {
  const webnn = withWebNN(t);
  const models = [arithmetic(), interrupted(), arithmetic()];
  const sessions = await Promise.all(models.map((model) => create(model)));
  assert.equal(webnn.contexts, 1);
  const settled = [];
  const runs = Array.from({length: 8}, (_, i) =>
    sessions[0].run(feedsOf(i)).then(({y}) => {
      settled.push(i);
      return [...y.data];
    }),
  );
  const middle = Array.from({length: 8}, (_, i) => sessions[1].run({x: floats([i, 1, 2, -3])}));
  (await Promise.all(runs)).forEach((data, i) => assert.deepEqual(data, expectedY(i)));
  (await Promise.all(middle)).forEach(({y}, i) => assertClose(y.data, asinh([i, 1, 2, -3])));
  assert.deepEqual(settled, [0, 1, 2, 3, 4, 5, 6, 7]);
  assert.equal(webnn.created, 5 + 4);
  assert.equal(webnn.rebinds, 0);
  const last = sessions[0].run(feedsOf(9));
  await sessions[0].release();
  assert.deepEqual([...(await last).y.data], expectedY(9));
  await assert.rejects(sessions[0].run(feedsOf()), /the session is released/);
  await assert.rejects(sessions[0].release(), /the session is released/);
  await Promise.all([sessions[1].release(), sessions[2].release()]);
  assert.equal(webnn.live, 0);
});

const dynamicFeeds = (rows) => {
  const data = Array.from({length: 3 * rows}, (_, i) => i);
  return Object.fromEntries(['a', 'b', 'c'].map((name) => [name, floats(data, [rows, 3])]));
};

async function checkDynamic(session, rows) {
  const {y} = await session.run(dynamicFeeds(rows));
  assert.deepEqual(y.dims, [rows, 3]);
  assert.deepEqual([...y.data], Array.from({length: 3 * rows}, (_, i) => 2 * i * i));
}

// WB-55, WB-78, WB-104 (h)
test('(h) keeps graphs and tensors for eight sets of shapes', async (t) => {
  const webnn = withWebNN(t);
  const session = await create(arithmetic(['n', 3]));
  for (let run = 0; run < 30; ++run) await checkDynamic(session, 1 + (run % 3));
  assert.deepEqual([webnn.created, webnn.destroyed, webnn.rebinds, webnn.builds], [15, 0, 0, 0]);
  assert.equal(webnn.signatures(), 3);
  assert.equal(env.tenon.stats().sessions.at(-1).builds, 3);
  for (let rows = 1; rows <= 9; ++rows) await checkDynamic(session, rows);
  assert.deepEqual([webnn.created, webnn.destroyed], [45, 5]);
  await checkDynamic(session, 2); // there still: 1 was the oldest
  assert.equal(webnn.created, 45);
  await checkDynamic(session, 1);
  assert.deepEqual([webnn.created, webnn.destroyed, webnn.live], [50, 10, 40]);
  env.tenon.maxShapeVariants = 1;
  t.after(() => (env.tenon.maxShapeVariants = undefined));
  // Evicted while their reads are under way.
  await Promise.all([20, 21, 22].map((rows) => checkDynamic(session, rows)));
  assert.equal(webnn.live, 5);
  await session.release();
  assert.equal(webnn.live, 0);
});

// WB-55
test('(h) builds with the sizes of freeDimensionOverrides when it is created', async (t) => {
  withWebNN(t);
  const session = await create(arithmetic(['n', 3]), {freeDimensionOverrides: {n: 2}});
  assert.equal(env.tenon.stats().sessions.at(-1).builds, 1);
  await session.run(feedsOf());
  assert.equal(env.tenon.stats().sessions.at(-1).builds, 1);
  await session.release();
});

// WB-81, WB-104 (i)
test('(i) comes back from faults of the device', async (t) => {
  const faults = {createTensor: [2, 8], writeTensor: [5], readTensor: [3]};
  const webnn = withWebNN(t, {faults});
  const session = await create(arithmetic(), {preferredOutputLocation: {z: 'ml-tensor'}});
  let failures = 0;
  for (let run = 1; run <= 20; ++run) {
    try {
      const {y, z} = await session.run(feedsOf(run));
      assert.deepEqual([...y.data], expectedY(run));
      z.dispose();
    } catch (error) {
      assert.match(error.message, /memory|written|read/);
      ++failures;
    }
  }
  assert.equal(failures, 3); // an eighth tensor is never asked for
  assert.equal(webnn.live, 5);
  assert.equal(webnn.created, 5);
  assert.equal(webnn.rebinds, 0);
  await session.release();
  assert.equal(webnn.live, 0);
});

// WB-81
test('(i) comes back from a run that is ended, or has wrong feeds', async (t) => {
  const webnn = withWebNN(t);
  const session = await create(interrupted());
  const x = floats([1, 2, 3, 4]);
  await session.run({x});
  await assert.rejects(session.run({x}, {terminate: true}), /terminate/);
  await assert.rejects(session.run({x: floats([1, 2])}), {code: 2});
  await assert.rejects(session.run({x: new Tensor('int32', [1, 2, 3, 4])}), {code: 2});
  const {y} = await session.run({x});
  assertClose(y.data, asinh([1, 2, 3, 4]));
  assert.equal(webnn.created, 4);
  assert.equal(webnn.rebinds, 0);
  await session.release();
});

// WB-58, WB-104 (i)
test('(i) makes another context where its own is lost', async (t) => {
  const webnn = withWebNN(t, {faults: {loseAtDispatch: 3}});
  const session = await create(arithmetic());
  const other = await create(interrupted());
  await session.run(feedsOf(1));
  await session.run(feedsOf(2));
  const pending = [3, 4, 5].map((run) => session.run(feedsOf(run)));
  for (const run of pending) {
    await assert.rejects(run, /InferenceSession.run: the WebNN context is lost: the device was lost/);
  }
  assert.equal(webnn.live, 0);
  assert.deepEqual([...(await session.run(feedsOf(6))).y.data], expectedY(6));
  assertClose((await other.run({x: floats([1, 2, 3, 4])})).y.data, asinh([1, 2, 3, 4]));
  assert.equal(webnn.contexts, 2);
  assert.equal(webnn.live, 5 + 4);
  await Promise.all([session.release(), other.release()]);
  assert.equal(webnn.live, 0);
});

// WB-58
test('(i) ends with a context of the application', async (t) => {
  const {provider} = await ownContext(t, {faults: {loseAtDispatch: 1}});
  const session = await create(arithmetic(), {}, provider);
  for (let run = 0; run < 2; ++run) {
    await assert.rejects(session.run(feedsOf()), /the WebNN context is lost: the device was lost/);
  }
  await session.release();
});

// WB-51, WB-104 (i)
test('(i) leaves a partition on the CPU that the device cannot build', async (t) => {
  for (const shape of [[4], ['n']]) {
    const webnn = withWebNN(t, {faults: {build: 1}});
    let session;
    const warnings = await printed('warn', async () => {
      session = await create(interrupted(shape));
      const {y} = await session.run({x: floats([1, 2, 3, 4])});
      assertClose(y.data, asinh([1, 2, 3, 4]));
    });
    assert.equal(warnings.length, 1);
    assert.match(warnings[0], /partition at node '.*makes h.*' runs on the CPU: ./);
    await session.run({x: floats([1, 2, 3, 4])});
    assert.equal(webnn.dispatches.length, 2);
    assert.equal(webnn.live, 2);
    await session.release();
    assert.equal(webnn.live, 0);
  }
});

// WB-46, WB-104 (j)
test('(j) shares a context among equal options alone, and ends it with its last session', async (t) => {
  const webnn = withWebNN(t);
  const contexts = [];
  const {ml} = globalThis.navigator;
  const {createContext} = ml;
  t.mock.method(ml, 'createContext', async (options) => {
    const context = await createContext(options);
    contexts.push({options, context, isLost: false});
    void context.lost.then(() => (contexts.find((each) => each.context === context).isLost = true));
    return context;
  });
  const providers = [
    'webnn',
    {name: 'webnn'},
    {name: 'webnn', deviceType: 'cpu'},
    {name: 'webnn', deviceType: 'gpu', powerPreference: 'low-power'},
    {name: 'webnn', powerPreference: 'low-power', deviceType: 'gpu', numThreads: undefined},
    {name: 'webnn', deviceType: 'npu', accelerated: false, numThreads: 2, another: 7},
  ];
  const sessions = await Promise.all(
    providers.map((provider) => create(arithmetic(), {}, provider)),
  );
  assert.deepEqual(
    contexts.map(({options}) => JSON.stringify(Object.entries(options).filter(([, v]) => v !== undefined).sort())),
    [
      '[]',
      '[["accelerated",false],["deviceType","cpu"]]',
      '[["accelerated",true],["deviceType","gpu"],["powerPreference","low-power"]]',
      '[["accelerated",false],["another",7],["deviceType","npu"],["numThreads",2]]',
    ],
  );
  for (const session of sessions) await session.run(feedsOf());
  assert.equal(webnn.created, 30);
  await sessions[0].release();
  await Promise.resolve();
  assert.equal(contexts[0].isLost, false);
  assert.equal(webnn.live, 25);
  await Promise.all(sessions.slice(1).map((session) => session.release()));
  await Promise.resolve();
  assert.deepEqual(contexts.map(({isLost}) => isLost), [true, true, true, true]);
  assert.equal(webnn.live, 0);
  const device = {};
  const onDevice = await create(arithmetic(), {}, {name: 'webnn', gpuDevice: device});
  assert.equal(contexts.at(-1).options, device);
  await onDevice.release();
  const warnings = await printed('warn', () =>
    assert.rejects(
      create(arithmetic(), {executionProviders: [{name: 'webnn', deviceType: 'abacus'}]}),
      /no execution provider works: 'webnn': deviceType: expected cpu, gpu or npu, got 'abacus'/,
    ),
  );
  assert.equal(warnings.length, 1);
});

// WB-54, WB-56, WB-66, WB-104 (k)
test('(k) carries integers of 64 bits where the device has 32', async (t) => {
  const dataTypes = ['float32', 'int32', 'uint8'];
  withWebNN(t, {limits: {dataTypes}});
  const session = await create(arithmetic([3], 'int64'));
  const big = (...data) => new Tensor('int64', data, [3]);
  const {y, z} = await session.run({a: big(1, -2, 3), b: big(4, 5, 6), c: big(10, 20, -30)});
  assert.equal(y.type, 'int64');
  assert.deepEqual([...y.data], [50n, 60n, -270n]);
  assert.deepEqual([...z.data], [-5n, -17n, 39n]);
  if (env.tenon.stats().sessions.at(-1).dispatches > 0) {
    await assert.rejects(
      session.run({a: big(1, 2, 2n ** 40n), b: big(4, 5, 6), c: big(1, 2, 3)}),
      /'a': element 2, 1099511627776, is not in the range of int32/,
    );
  } else {
    t.diagnostic('the core left int64 on the CPU');
  }
  await session.release();
  // WB-88
  await assert.rejects(
    create(arithmetic([3], 'int64'), {preferredOutputLocation: 'ml-tensor'}),
    /output 'y': an 'ml-tensor' of this context cannot hold type int64/,
  );
});

// WB-56, WB-104 (k)
test('(k) carries values without dimensions where the device has none', async (t) => {
  const least = {rankRange: {min: 1}};
  for (const [limits, dispatches] of [
    [{}, 1],
    [{input: least, constant: least, output: least}, 1],
    [least, 0], // where no operator has them, either
  ]) {
    const webnn = withWebNN(t, {limits});
    const session = await create(arithmetic([]), {preferredOutputLocation: {z: 'ml-tensor'}});
    const {y, z} = await session.run({a: floats([1], []), b: floats([2], []), c: floats([4], [])});
    assert.deepEqual([y.dims, [...y.data]], [[], [12]]);
    assert.deepEqual([z.dims, [...(await z.getData(true))]], [[], [-1]]);
    assert.equal(webnn.dispatches.length, dispatches);
    await session.release();
  }
});

// WB-104 (k)
test('(k) carries float16 where the device has none', async (t) => {
  withWebNN(t, {limits: {dataTypes: ['float32', 'int32', 'uint8']}});
  const session = await create(arithmetic([2], 'float16'));
  const half = (...bits) => new Tensor('float16', Uint16Array.from(bits), [2]);
  const {y} = await session.run({a: half(0x3c00, 0x4000), b: half(0x3c00, 0), c: half(0x4000, 0x3c00)});
  assert.deepEqual([...new Uint16Array(y.data.buffer)], [0x4400, 0x3c00 + 0x400]);
  await session.release();
});

// WB-79
test('holds idle tensors to a limit', async (t) => {
  const webnn = withWebNN(t);
  t.after(() => (env.tenon.mlTensorCacheBytes = undefined));
  const sessions = await Promise.all([1, 2, 3].map(() => create(arithmetic())));
  env.tenon.mlTensorCacheBytes = 2 * 120;
  for (const session of sessions) await session.run(feedsOf());
  assert.equal(webnn.created, 15);
  assert.equal(webnn.live, 10);
  await sessions[1].run(feedsOf());
  await sessions[2].run(feedsOf());
  assert.equal(webnn.created, 15);
  await sessions[0].run(feedsOf()); // whose tensors went: those of 1 go
  assert.equal(webnn.created, 20);
  assert.equal(webnn.live, 10);
  await sessions[2].run(feedsOf());
  assert.equal(webnn.created, 20);
  env.tenon.mlTensorCacheBytes = 0;
  const runs = [1, 2].map((run) => sessions[2].run(feedsOf(run)));
  assert.deepEqual([...(await runs[1]).y.data], expectedY(2));
  assert.equal(webnn.live, 0);
  await Promise.all(sessions.map((session) => session.release()));
});

// WB-83
test('cleans up after a session that is dropped, with a warning', async (t) => {
  const webnn = withWebNN(t);
  const warnings = await printed('warn', async () => {
    await (async () => {
      const session = await create(arithmetic(), {logId: 'dropped'});
      await session.run(feedsOf());
    })();
    assert.equal(webnn.live, 5);
    await collected(() => webnn.live === 0);
  });
  assert.deepEqual(warnings, [
    "session 'dropped' was not released: call release() when it is done",
  ]);
  assert.equal(webnn.live, 0);
});

// WB-13, WB-105
test('leaks nothing over 200 sessions', {timeout: 300_000}, async (t) => {
  const webnn = withWebNN(t);
  const core = await loadCore();
  const bytes = [];
  for (let round = 0; round < 200; ++round) {
    const session = await create(round % 2 ? interrupted() : arithmetic());
    const feeds = round % 2 ? {x: floats([1, 2, 3, 4])} : feedsOf();
    for (let run = 0; run < 20; ++run) await session.run(feeds);
    await session.release();
    assert.equal(webnn.live, 0);
    bytes.push(core.memory.buffer.byteLength);
  }
  assert.equal(bytes.at(-1), bytes[4]);
  assert.equal(webnn.created, 100 * 5 + 100 * 4);
});
