// The entries of the package in pages: a script tag, an import map, a bundle, another origin, the
// worker of env.wasm.proxy, and images.
import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import path from 'node:path';
import test from 'node:test';

import {build} from '../../web/node_modules/esbuild/lib/main.js';
import {page, serve, show, skip} from './browser.mjs';
import {newApplication} from './packed.mjs';
import {DIGITS, PACKAGE} from './package.mjs';

const DEADLINE_MS = 120_000;
const options = {skip, timeout: DEADLINE_MS};
const digits = readFileSync(DIGITS);

// Uses the namespace `ort`.
const USE = `
  const session = await ort.InferenceSession.create('/digits.onnx');
  const image = new ort.Tensor('float32', new Float32Array(64), [1, 1, 8, 8]);
  const {probabilities} = await session.run({image});
  await session.release();
  outcome.sum = probabilities.data.reduce((sum, value) => sum + value, 0);
  outcome.default = ort.default.env === ort.env;`;

// The names of the page's own scripts that are for env.wasm.proxy.
const SCRIPTS = `
  outcome.scripts = performance.getEntriesByType('resource')
    .map(({name}) => name.split('/').pop()).filter((name) => name.includes('proxy'));`;

function checkUse({sum, default: isSame}) {
  assert.ok(Math.abs(sum - 1) < 1e-5, `${sum}`);
  assert.ok(isSame);
}

for (const name of ['ort.min.js', 'ort.wasm.min.js', 'ort.webgpu.min.js', 'ort.js']) {
  // WB-3
  test(`${name}: a script tag defines the global ort`, options, async () => {
    const text = page(USE + SCRIPTS, `<script src="/dist/${name}"></script>`);
    const {result} = await show({'/page.html': text, '/digits.onnx': digits});
    checkUse(result);
    assert.deepEqual(result.scripts, []); // what is not asked for is not loaded
  });
}

// WB-1
test('an import map puts it in the place of onnxruntime-web', options, async () => {
  const map = JSON.stringify({imports: {'onnxruntime-web': '/dist/ort.min.mjs'}});
  const head = `<script type="importmap">${map}</script>`;
  const text = page(`const ort = await import('onnxruntime-web'); ${USE}`, head);
  checkUse((await show({'/page.html': text, '/digits.onnx': digits})).result);
});

// WB-1
test('a bundle of an application works with the module beside it', options, async (t) => {
  const application = newApplication({'app.js': `
    import * as ort from 'onnxruntime-web';
    export async function use(outcome) { ${USE} }`});
  t.after(application.remove);
  const {outputFiles} = await build({
    absWorkingDir: application.folder,
    entryPoints: ['app.js'],
    bundle: true,
    minify: true,
    write: false,
    format: 'esm',
  });
  const text = page("await (await import('/app.js')).use(outcome);");
  const files = {
    '/page.html': text,
    '/app.js': outputFiles[0].text,
    '/tenon.wasm': readFileSync(path.join(PACKAGE, 'dist/tenon.wasm')),
    '/digits.onnx': digits,
  };
  checkUse((await show(files)).result);
});

// WB-1, WB-25: a prefix for onnxruntime-web's files, as on its content delivery network.
test('uses its own module if the page names that of another package', options, async () => {
  const wrong = page(`
    const ort = await import('/dist/ort.min.mjs');
    ort.env.wasm.wasmPaths = '/onnxruntime-web@1.30.0/dist/';
    ${USE}`);
  const {result, lines} = await show({'/page.html': wrong, '/digits.onnx': digits});
  checkUse(result);
  assert.equal(lines.filter((line) => /wasmPaths.*404.*beside its code/.test(line)).length, 1);
});

const PROXY = `
  ort.env.wasm.proxy = true;
  ${USE}
  // The page's thread is free: its timers run while the worker computes.
  const pending = await ort.InferenceSession.create('/digits.onnx', {logId: 'second'});
  const [first, second] = await Promise.all([pending.run({image}), pending.run({image})]);
  outcome.same = first.probabilities.data.every((x, i) => x === second.probabilities.data[i]);
  outcome.kept = image.data.length;
  outcome.refused = await pending.run({image}, {probabilities}).catch(({message}) => message);
  ${SCRIPTS}
  outcome.wasm = performance.getEntriesByType('resource')
    .filter(({name}) => name.endsWith('.wasm')).length;`;

function checkProxy(result) {
  checkUse(result);
  assert.ok(result.same);
  assert.equal(result.kept, 64);
  assert.match(result.refused, /env\.wasm\.proxy/);
  assert.ok(result.scripts.includes('ort.proxy-client.min.mjs'), result.scripts.join());
  assert.equal(result.wasm, 0); // the page itself has loaded no module
}

for (const [name, load, head] of [
  ['a module', "const ort = await import('/dist/ort.min.mjs');", ''],
  ['the wasm entry', "const ort = await import('/dist/ort.wasm.min.mjs');", ''],
  ['a script', '', '<script src="/dist/ort.min.js"></script>'],
]) {
  // WB-44
  test(`${name}: sessions run in a worker`, options, async () => {
    const text = page(`${load} ${PROXY}`, head);
    checkProxy((await show({'/page.html': text, '/digits.onnx': digits})).result);
  });
}

// WB-44
test('the worker has WebNN, if there is one, and the paths of the page', options, async () => {
  const text = page(`
    const ort = await import('/dist/ort.min.mjs');
    ort.env.wasm.proxy = true;
    ort.env.wasm.wasmPaths = 'sub/';
    const session = await ort.InferenceSession.create('digits.onnx', {
      executionProviders: ['webnn', 'wasm'],
    });
    const image = new ort.Tensor('float32', new Float32Array(64), [1, 1, 8, 8]);
    const {probabilities} = await session.run({image});
    outcome.dims = probabilities.dims;`);
  const {result} = await show({
    '/page.html': text,
    '/digits.onnx': digits,
    '/sub/tenon.wasm': readFileSync(path.join(PACKAGE, 'dist/tenon.wasm')),
  });
  assert.deepEqual(result.dims, [1, 10]);
});

// WB-44: the package on a server of its own, like a content delivery network.
test('works from another origin, also in a worker', options, async () => {
  const other = await serve({});
  try {
    const text = page(`
      const ort = await import('${other.address}/dist/ort.min.mjs');
      ${PROXY}`);
    checkProxy((await show({'/page.html': text, '/digits.onnx': digits})).result);
  } finally {
    other.server.close();
  }
});

// WB-44: such a script may not know its base, but the address of its tag.
test('a script tag of another origin starts the worker, too', options, async () => {
  const other = await serve({});
  try {
    const text = page(PROXY, `<script src="${other.address}/dist/ort.min.js"></script>`);
    checkProxy((await show({'/page.html': text, '/digits.onnx': digits})).result);
  } finally {
    other.server.close();
  }
});

// WB-44: what is loaded on request needs no other permission than the entry.
for (const [name, load, head] of [
  ['a module', "const ort = await import('/dist/ort.min.mjs');", ''],
  ['a script', '', '<script src="/dist/ort.min.js"></script>'],
]) {
  test(`${name}: the worker starts under a policy of nonces`, options, async () => {
    const text = page(`${load} ${PROXY}`, head).replaceAll('<script', '<script nonce="once"');
    const policy = "script-src 'nonce-once' 'wasm-unsafe-eval'; worker-src 'self'";
    const headers = {'content-security-policy': policy};
    const {result} = await show({'/page.html': text, '/digits.onnx': digits}, headers);
    checkProxy(result);
  });
}

// WB-44, WB-106
for (const [missing, reason] of [
  ['proxy-worker', /the worker of env\.wasm\.proxy ended: .*ort\.proxy-worker\.min\.mjs/],
  ['proxy-client', /no execution provider works: 'cpu': .*ort\.proxy-client\.min\.mjs/],
]) {
  test(`says that ort.${missing}.min.mjs could not be loaded`, options, async () => {
    const text = page(`
      const ort = await import('/app/ort.min.mjs');
      ort.env.wasm.proxy = true;
      outcome.reason = await ort.InferenceSession.create('/digits.onnx').catch((e) => e.message);`);
    const names = ['ort.min.mjs', 'ort.proxy-client.min.mjs', 'ort.proxy-worker.min.mjs'];
    const files = names.filter((name) => !name.includes(missing));
    const {result} = await show({
      '/page.html': text,
      ...Object.fromEntries(
        files.map((name) => [`/app/${name}`, readFileSync(path.join(PACKAGE, 'dist', name))]),
      ),
    });
    assert.match(result.reason, reason);
  });
}

// WB-16
test('optimizedModelFilePath offers a download', options, async () => {
  const text = page(`
    const ort = await import('/dist/ort.min.mjs');
    const links = [];
    const {click} = HTMLAnchorElement.prototype;
    HTMLAnchorElement.prototype.click = function () {
      links.push(this);
    };
    outcome.models = [];
    for (const proxy of [false, true]) {
      ort.env.wasm.proxy = proxy;
      await ort.InferenceSession.create('/digits.onnx', {optimizedModelFilePath: 'a/small.onnx'});
      await new Promise((resolve) => setTimeout(resolve, 100));
      const {href, download} = links.at(-1);
      const model = await (await fetch(href)).arrayBuffer();
      const session = await ort.InferenceSession.create(model);
      outcome.models.push([links.length, download, session.inputNames]);
    }`);
  const {result} = await show({'/page.html': text, '/digits.onnx': digits});
  assert.deepEqual(result.models, [[1, 'small.onnx', ['image']], [2, 'small.onnx', ['image']]]);
});

// WB-23: the pixels are those of a canvas, whose red is 10 * x + y, green 100, blue 200.
test('makes tensors from images, and images from tensors', options, async () => {
  const text = page(`
    const {Tensor} = await import('/dist/ort.wasm.min.mjs');
    const pixels = new ImageData(3, 2);
    for (let i = 0; i < 6; ++i) {
      pixels.data.set([10 * (i % 3) + Math.floor(i / 3), 100, 200, 255], 4 * i);
    }
    const canvas = document.createElement('canvas');
    [canvas.width, canvas.height] = [3, 2];
    canvas.getContext('2d').putImageData(pixels, 0, 0);
    const url = canvas.toDataURL();
    const element = new Image();
    element.src = url;
    const sources = {pixels, element, bitmap: await createImageBitmap(pixels), url};
    const norm = {mean: 1};
    outcome.made = {};
    for (const [name, source] of Object.entries(sources)) {
      const {dims, type, data} = await Tensor.fromImage(source, {norm});
      outcome.made[name] = [dims, type, [...data]];
    }
    const large = await Tensor.fromImage(element, {resizedWidth: 6, resizedHeight: 4, norm});
    outcome.large = [large.dims, large.data[24 + 5], large.data[48 + 5]];
    const tensor = await Tensor.fromImage(pixels);
    const back = tensor.toImageData();
    outcome.back = [back.width, back.height, [...back.data].every((v, i) => v === pixels.data[i])];
    const again = await Tensor.fromImage(tensor.toDataURL(), {norm});
    outcome.again = [...again.data];
    outcome.missing = await Tensor.fromImage('/none.png').catch(({message}) => message);
    outcome.worker = await new Promise((resolve) => {
      const script = \`import {Tensor} from '\${location.origin}/dist/ort.wasm.min.mjs';
        const {dims} = await Tensor.fromImage('\${url}');
        postMessage(dims);\`;
      const worker = new Worker(
        URL.createObjectURL(new Blob([script], {type: 'text/javascript'})),
        {type: 'module'},
      );
      worker.onmessage = ({data}) => resolve(data);
      worker.onerror = ({message}) => resolve(message);
    });`);
  const {result} = await show({'/page.html': text});
  const red = [0, 10, 20, 1, 11, 21];
  const channels = [...red, ...red.map(() => 100), ...red.map(() => 200)];
  for (const [name, made] of Object.entries(result.made)) {
    assert.deepEqual(made, [[1, 3, 2, 3], 'float32', channels], name);
  }
  assert.deepEqual(result.large, [[1, 3, 4, 6], 100, 200]);
  assert.deepEqual(result.back, [3, 2, true]);
  assert.deepEqual(result.again, channels);
  assert.match(result.missing, /cannot load \/none\.png/);
  assert.deepEqual(result.worker, [1, 3, 2, 3]);
});
