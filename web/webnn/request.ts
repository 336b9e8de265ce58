// The arguments of a run, as they were at the call.
import type {InferenceSession, Tensor} from '../common/index.js';
import type {MLTensor} from './api.js';

// A feed at the time of the call. Its data is on the CPU or in `mlTensor`.
export interface Feed {
  readonly type: Tensor.Type;
  readonly dims: readonly number[];
  readonly data?: Tensor.DataType;
  readonly mlTensor?: MLTensor;
}

type Fetches = Readonly<Record<string, Tensor | null>>;

// The tensor of a feed or fetch on a device; undefined if it is on the CPU.
export function mlTensorOf(tensor: Tensor | null): MLTensor | undefined {
  return tensor?.location === 'ml-tensor' ? (tensor.mlTensor as MLTensor) : undefined;
}

function feedOf(tensor: Tensor): Feed {
  const {type, dims} = tensor;
  const mlTensor = mlTensorOf(tensor);
  return mlTensor === undefined ? {type, dims, data: tensor.data} : {type, dims, mlTensor};
}

// Whatever the class of the array; that of a Buffer has another slice().
function copyOf(data: Tensor.DataType): Tensor.DataType {
  return Array.isArray(data) ? [...data] : Uint8Array.prototype.slice.call(data);
}

// Says what it has not read yet.
interface Reader {
  needsFeed(name: string): boolean;
}

export class Request {
  readonly fetches: Fetches;
  // The run that reads the feeds, once it has begun.
  reader: Reader | undefined;
  #feeds: ReadonlyMap<string, Feed>;
  #options: InferenceSession.RunOptions;

  // Until keep() is called, the data and the options are the application's own.
  constructor(
    feeds: Readonly<Record<string, Tensor>>,
    fetches: Fetches,
    options: InferenceSession.RunOptions,
  ) {
    this.#feeds = new Map(Object.entries(feeds).map(([name, tensor]) => [name, feedOf(tensor)]));
    this.fetches = {...fetches};
    this.#options = options;
  }

  get feeds(): ReadonlyMap<string, Feed> {
    return this.#feeds;
  }

  get options(): InferenceSession.RunOptions {
    return this.#options;
  }

  // Copies what the application may change after the call, except data that has been read.
  keep(): void {
    this.#feeds = new Map(
      Array.from(this.#feeds, ([name, {type, dims, data, mlTensor}]) => {
        const isNeeded = data !== undefined && this.reader?.needsFeed(name) !== false;
        return [name, {type, dims: [...dims], data: isNeeded ? copyOf(data) : data, mlTensor}];
      }),
    );
    this.#options = copyOfOptions(this.#options);
  }
}

// A report still goes to the application's object.
function copyOfOptions(options: InferenceSession.RunOptions): InferenceSession.RunOptions {
  return Object.defineProperty({...options}, 'report', {
    enumerable: false,
    set: (report: InferenceSession.RunReport) => (options.report = report),
  });
}
