// The package's entry 'wasm': the execution providers of the WebAssembly module alone.
import * as api from '../common/index.js';
import {env, registerBackend} from '../common/index.js';
import {API_VERSION} from '../common/version.js';
import {absentBackend} from './absent.js';
import {lentMemory} from './lent-memory.js';
import {proxied} from './proxy.js';
import {wasmBackend} from './session.js';

export * from '../common/index.js';
export default api;

Object.assign(env.versions, {web: API_VERSION});
Object.assign(env.tenon, lentMemory);

const PRIORITY = 10;
registerBackend('cpu', proxied('cpu', wasmBackend), PRIORITY);
registerBackend('wasm', proxied('wasm', wasmBackend), PRIORITY);

const ONLY_IF_ASKED = -1;
registerBackend('webgpu', absentBackend("there is no WebGPU yet: use 'webnn' or 'wasm'"), ONLY_IF_ASKED);
registerBackend('webgl', absentBackend("there is no WebGL: use 'webnn' or 'wasm'"), ONLY_IF_ASKED);
registerBackend('webnn', absentBackend("this entry has no WebNN: import 'tenon-web'"), ONLY_IF_ASKED);
