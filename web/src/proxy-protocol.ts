// The messages between a page, or the main thread of Node.js, and the worker of env.wasm.proxy. Each
// request has a number, which its reply repeats.
import type {InferenceSession, Tensor} from '../common/index.js';

// A tensor on the CPU.
export interface SentTensor {
  type: Tensor.Type;
  dims: readonly number[];
  data: Tensor.DataType;
}

// The members of env that the worker's own env gets.
export interface Settings {
  logLevel: unknown;
  debug: unknown;
  trace: unknown;
  wasm: Record<string, unknown>;
  tenon: Record<string, unknown>;
}

export type RequestBody =
  | {
      kind: 'init';
      settings: Settings;
      provider: string;
      entry: string | {readonly name: string} | undefined;
    }
  | {
      kind: 'create';
      provider: string;
      model: string | Uint8Array;
      options: InferenceSession.SessionOptions;
    }
  | {
      kind: 'run';
      session: number;
      feeds: Record<string, SentTensor>;
      fetches: string[];
      options: InferenceSession.RunOptions;
    }
  | {kind: 'startProfiling' | 'endProfiling' | 'release'; session: number};

export type Request = RequestBody & {id: number};

export interface CreateReply {
  session: number;
  inputMetadata: readonly InferenceSession.ValueMetadata[];
  outputMetadata: readonly InferenceSession.ValueMetadata[];
}

export interface RunReply {
  outputs: Record<string, SentTensor>;
  report: InferenceSession.RunReport | undefined;
}

export interface SentError {
  name: string;
  message: string;
  code: number | undefined;
  // That the provider does not work here: another one may.
  isUnavailable: boolean;
}

export type Reply =
  | {id: number; value: unknown}
  | {id: number; error: SentError}
  // A file that only the page can give to the user.
  | {id: 0; file: {path: string; bytes: Uint8Array<ArrayBuffer>}};

// What it takes to send tensors: their own pieces of memory, to be transferred.
export function buffersOf(tensors: Record<string, SentTensor>): ArrayBuffer[] {
  const buffers = Object.values(tensors).map(({data}) => (ArrayBuffer.isView(data) ? data.buffer : null));
  return [...new Set(buffers)].filter((buffer) => buffer instanceof ArrayBuffer);
}
