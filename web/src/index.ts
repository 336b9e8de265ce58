// The package tenon-web.
import {registerBackend} from '../common/index.js';
import {webnnBackend} from '../webnn/session.js';
import {wasmBackend} from './session.js';

export * from '../common/index.js';

const PRIORITY = 10;
registerBackend('cpu', wasmBackend, PRIORITY);
registerBackend('wasm', wasmBackend, PRIORITY);
registerBackend('webnn', webnnBackend, 5);
