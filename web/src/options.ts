// Converts options of sessions and runs to calls of the shim.
import type {InferenceSession, Tensor} from '../common/index.js';
import type {Core} from './core.js';
import {withCleanup} from './now-or-later.js';
import {saveFile} from './save-file.js';

// Their numbers in the C interface.
const GRAPH_OPTIMIZATION_LEVELS = {disabled: 0, basic: 1, extended: 2, layout: 3, all: 99};
const EXECUTION_MODES = {sequential: 0, parallel: 1};
const THREADS = 'intra_op_num_threads'; // may be among the config entries, too
const DEFAULT_PROFILE_PREFIX = 'onnxruntime_profile_';

type Options = Record<string, unknown>;

// Reads the options in an object and checks the kinds of their values. Undefined options count as
// absent.
class OptionReader {
  constructor(
    readonly options: Options,
    readonly what: string,
  ) {}

  ofType(name: string, type: 'boolean' | 'string', use: (value: never) => void): void {
    const value = this.options[name];
    if (value === undefined) return;
    if (typeof value !== type) this.reject(name, `a ${type}`, value);
    use(value as never);
  }

  integer(name: string, least: number, most: number, use: (value: number) => void): void {
    const value = this.options[name];
    if (value === undefined) return;
    if (!Number.isInteger(value) || (value as number) < least || (value as number) > most) {
      this.reject(name, `an integer from ${least} to ${most}`, value);
    }
    use(value as number);
  }

  oneOf(name: string, numbers: Record<string, number>, use: (value: number) => void): void {
    const value = this.options[name];
    if (value === undefined) return;
    if (typeof value !== 'string' || !Object.hasOwn(numbers, value)) {
      this.reject(name, `one of ${Object.keys(numbers).join(', ')}`, value);
    }
    use(numbers[value as string]);
  }

  object(name: string): Options {
    const value = this.options[name] ?? {};
    if (typeof value !== 'object') this.reject(name, 'an object', value);
    return value as Options;
  }

  reject(name: string, expected: string, value: unknown): never {
    throw new TypeError(`${this.what}.${name}: expected ${expected}, got ${String(value)}`);
  }
}

// The config entries of an option `extra`: nested names are joined by dots, booleans are 1 and 0.
export function flattenExtra(
  extra: Options,
  what: string,
  prefix = '',
  seen: readonly unknown[] = [],
): Array<[string, string]> {
  if (seen.includes(extra)) throw new TypeError(`${what}.extra: '${prefix}' contains itself`);
  return Object.entries(extra).flatMap(([name, value]): Array<[string, string]> => {
    const key = prefix + name;
    if (typeof value === 'string' || typeof value === 'number') return [[key, String(value)]];
    if (typeof value === 'boolean') return [[key, value ? '1' : '0']];
    if (typeof value === 'object' && value !== null) {
      return flattenExtra(value as Options, what, `${key}.`, [...seen, extra]);
    }
    throw new TypeError(
      `${what}.extra: '${key}': expected a string, a number, a boolean or an object, ` +
        `got ${String(value)}`,
    );
  });
}

const INT_MAX = 2 ** 31 - 1;

// Calls a setter of the shim with texts and numbers.
export type Setter = (setter: string, ...args: Array<string | number>) => void;

// Calls `body` with a handle of options, which `fill` has filled. The handle is valid until `body`
// ends.
function withHandle<Result>(
  core: Core,
  kind: 'session' | 'run',
  operation: string,
  fill: (set: Setter) => void,
  body: (handle: number, set: Setter) => Result,
): Result {
  const handle = core.make(operation, `tenon_${kind}_options_create`);
  const set: Setter = (setter, ...args) => {
    const texts = args.filter((arg) => typeof arg === 'string');
    core.withTexts(operation, texts, (...addresses) => {
      const passed = args.map((arg) => (typeof arg === 'string' ? addresses.shift()! : arg));
      core.check(operation, `tenon_${kind}_options_${setter}`, handle, ...passed);
    });
  };
  const release = () => {
    if (!core.isDead) core.call(`tenon_${kind}_options_release`, handle);
  };
  return withCleanup(() => {
    fill(set);
    return body(handle, set);
  }, release);
}

// The optimized model is written to the module's folder, under the last part of its path; then it is
// given to the user.
const OPTIMIZED_PATH = 'session.optimized_model_filepath';
const FOLDER = /^.*\//s;

export async function saveOptimizedModel(
  core: Core,
  {optimizedModelFilePath: path}: InferenceSession.SessionOptions,
): Promise<void> {
  if (path === undefined) return;
  const folder = path.match(FOLDER)?.[0] ?? '';
  for (const [name, bytes] of core.files.close()) await saveFile(folder + name, bytes);
}

// Where each output is to be left. Error: a place that the backend does not know.
export function readOutputLocations(
  options: InferenceSession.SessionOptions,
  known: readonly Tensor.DataLocation[],
): (output: string) => Tensor.DataLocation {
  const given = options.preferredOutputLocation;
  const byName = typeof given === 'object' && given !== null ? given : {};
  const places = typeof given === 'object' ? Object.values(byName) : [given ?? 'cpu'];
  for (const place of places) {
    if (known.includes(place)) continue;
    throw new Error(
      `options.preferredOutputLocation: expected ${known.map((name) => `'${name}'`).join(' or ')}` +
        ` for this execution provider, got '${String(place)}'`,
    );
  }
  return (output) => (typeof given === 'string' ? given : byName[output] ?? 'cpu');
}

export function withSessionOptions<Result>(
  core: Core,
  options: InferenceSession.SessionOptions,
  operation: string,
  body: (handle: number, set: Setter) => Result,
): Result {
  const reader = new OptionReader(options as Options, 'options');
  return withHandle(
    core,
    'session',
    operation,
    (set) => {
      const setNumber = (setter: string) => (value: number) => set(setter, value);
      reader.oneOf(
        'graphOptimizationLevel',
        GRAPH_OPTIMIZATION_LEVELS,
        setNumber('graph_optimization_level'),
      );
      reader.oneOf('executionMode', EXECUTION_MODES, setNumber('execution_mode'));
      reader.ofType('enableCpuMemArena', 'boolean', (is: boolean) => set('cpu_mem_arena', +is));
      reader.ofType('enableMemPattern', 'boolean', (is: boolean) => set('mem_pattern', +is));
      let prefix = DEFAULT_PROFILE_PREFIX;
      reader.ofType('profileFilePrefix', 'string', (given: string) => (prefix = given));
      reader.ofType('enableProfiling', 'boolean', (is: boolean) => {
        if (is) set('enable_profiling', prefix);
      });
      reader.ofType('optimizedModelFilePath', 'string', (path: string) => {
        core.files.open();
        set('config_entry', OPTIMIZED_PATH, `/${path.replace(FOLDER, '')}`);
      });
      reader.ofType('logId', 'string', (id: string) => set('log_id', id));
      reader.integer('logSeverityLevel', 0, 4, setNumber('log_severity_level'));
      reader.integer('logVerbosityLevel', 0, INT_MAX, setNumber('log_verbosity_level'));
      for (const [name, size] of Object.entries(reader.object('freeDimensionOverrides'))) {
        if (!Number.isSafeInteger(size) || (size as number) < 0) {
          reader.reject(`freeDimensionOverrides['${name}']`, 'a size', size);
        }
        set('free_dimension_override', name, size as number);
      }
      reader.integer('intraOpNumThreads', 0, INT_MAX, setNumber('intra_op_num_threads'));
      for (const [key, value] of flattenExtra(reader.object('extra'), 'options')) {
        if (key !== THREADS) set('config_entry', key, value);
        else new OptionReader({[key]: Number(value)}, 'options.extra').integer(key, 0, INT_MAX, setNumber(key));
      }
    },
    body,
  );
}

// Calls `body` with the handle of run options, or with 0 if all have their defaults. Then sets
// `options.report` if its config entry requests it.
export function withRunOptions<Result>(
  core: Core,
  options: InferenceSession.RunOptions,
  operation: string,
  body: (handle: number) => Result,
): Result {
  const reader = new OptionReader(options as Options, 'options');
  const entries = flattenExtra(reader.object('extra'), 'options');
  if (Object.keys(options).length === 0) return body(0);
  return withHandle(
    core,
    'run',
    operation,
    (set) => {
      reader.integer('logSeverityLevel', 0, 4, (level) => set('log_severity_level', level));
      reader.integer('logVerbosityLevel', 0, INT_MAX, (n) => set('log_verbosity_level', n));
      reader.ofType('tag', 'string', (tag: string) => set('tag', tag));
      reader.ofType('terminate', 'boolean', (is: boolean) => {
        if (is) set('terminate');
      });
      for (const [key, value] of entries) set('config_entry', key, value);
    },
    (handle) =>
      withCleanup(
        () => body(handle),
        () => {
          if (!core.isDead) readReport(core, handle, options);
        },
      ),
  );
}

function readReport(core: Core, handle: number, options: InferenceSession.RunOptions): void {
  const json = core.call('tenon_run_options_report', handle);
  if (json !== 0) options.report = JSON.parse(core.text(json));
}
