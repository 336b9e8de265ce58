// InferenceSession: the session as an application sees it.
import type {GlobalType} from './global-type.js';
import type {OnnxModelOptions} from './onnx-model.js';
import type {OnnxValue, OnnxValueDataLocation} from './onnx-value.js';
import {Session} from './session-class.js';
import type {Tensor} from './tensor.js';

export declare namespace InferenceSession {
  type OnnxValueMapType = {readonly [name: string]: OnnxValue};
  type NullableOnnxValueMapType = {readonly [name: string]: OnnxValue | null};

  type FeedsType = OnnxValueMapType;
  // The names of the wanted outputs; or with each name a tensor to write to, or null.
  type FetchesType = readonly string[] | NullableOnnxValueMapType;
  type ReturnType = OnnxValueMapType;

  type LogSeverityLevel = 0 | 1 | 2 | 3 | 4;

  interface SessionOptions extends OnnxModelOptions {
    // In the order of preference. Default: all that work.
    executionProviders?: readonly ExecutionProviderConfig[];
    // Have no effect: env.wasm.numThreads is the number of threads.
    intraOpNumThreads?: number;
    interOpNumThreads?: number;
    freeDimensionOverrides?: {readonly [dimensionName: string]: number};
    graphOptimizationLevel?: 'disabled' | 'basic' | 'extended' | 'layout' | 'all';
    enableCpuMemArena?: boolean;
    enableMemPattern?: boolean;
    executionMode?: 'sequential' | 'parallel';
    // The optimized model becomes a file in Node, and a download in a page.
    optimizedModelFilePath?: string;
    enableProfiling?: boolean;
    // In WebAssembly a trace has no file, and the prefix has no effect.
    profileFilePrefix?: string;
    logId?: string;
    logSeverityLevel?: LogSeverityLevel;
    logVerbosityLevel?: number;
    // Where outputs are left: one place for all of them, or one for each name. Default: 'cpu'.
    preferredOutputLocation?:
      | OnnxValueDataLocation
      | {readonly [outputName: string]: OnnxValueDataLocation};
    // Has no effect.
    enableGraphCapture?: boolean;
    // Config entries of the session. Objects in it are flattened; their names are joined by dots.
    extra?: Record<string, unknown>;
  }

  // The options of all execution providers that programs for onnxruntime-common name. This package
  // has 'cpu', 'wasm' and 'webnn'.
  interface ExecutionProviderOptionMap {
    coreml: CoreMLExecutionProviderOption;
    cpu: CpuExecutionProviderOption;
    cuda: CudaExecutionProviderOption;
    dml: DmlExecutionProviderOption;
    nnapi: NnapiExecutionProviderOption;
    tensorrt: TensorRtExecutionProviderOption;
    wasm: WebAssemblyExecutionProviderOption;
    webgl: WebGLExecutionProviderOption;
    webgpu: WebGpuExecutionProviderOption;
    webnn: WebNNExecutionProviderOption;
    qnn: QnnExecutionProviderOption;
    xnnpack: XnnpackExecutionProviderOption;
  }

  type ExecutionProviderName = keyof ExecutionProviderOptionMap;
  type ExecutionProviderConfig =
    | ExecutionProviderOptionMap[ExecutionProviderName]
    | ExecutionProviderOption
    | ExecutionProviderName
    | string;

  interface ExecutionProviderOption {
    readonly name: string;
  }
  interface CpuExecutionProviderOption extends ExecutionProviderOption {
    readonly name: 'cpu';
    useArena?: boolean;
  }
  interface CudaExecutionProviderOption extends ExecutionProviderOption {
    readonly name: 'cuda';
    deviceId?: number;
  }
  interface DmlExecutionProviderOption extends ExecutionProviderOption {
    readonly name: 'dml';
    deviceId?: number;
  }
  interface TensorRtExecutionProviderOption extends ExecutionProviderOption {
    readonly name: 'tensorrt';
    deviceId?: number;
  }
  interface WebAssemblyExecutionProviderOption extends ExecutionProviderOption {
    readonly name: 'wasm';
  }
  interface WebGLExecutionProviderOption extends ExecutionProviderOption {
    readonly name: 'webgl';
  }
  interface XnnpackExecutionProviderOption extends ExecutionProviderOption {
    readonly name: 'xnnpack';
  }

  type BufferCacheMode = 'disabled' | 'lazyRelease' | 'simple' | 'bucket';
  interface WebGpuExecutionProviderOption extends ExecutionProviderOption {
    readonly name: 'webgpu';
    preferredLayout?: 'NCHW' | 'NHWC';
    forceCpuNodeNames?: readonly string[];
    validationMode?: 'disabled' | 'wgpuOnly' | 'basic' | 'full';
    enableRobustness?: boolean;
    storageBufferCacheMode?: BufferCacheMode;
    uniformBufferCacheMode?: BufferCacheMode;
    queryResolveBufferCacheMode?: BufferCacheMode;
    defaultBufferCacheMode?: BufferCacheMode;
    device?: GlobalType<'GPUDevice'>;
  }

  interface WebNNExecutionProviderName extends ExecutionProviderOption {
    readonly name: 'webnn';
  }
  interface WebNNContextOptions {
    // 'cpu' means accelerated: false, the others mean accelerated: true.
    deviceType?: 'cpu' | 'gpu' | 'npu';
    numThreads?: number;
    powerPreference?: 'default' | 'low-power' | 'high-performance';
  }
  interface WebNNOptionsWithoutMLContext extends WebNNExecutionProviderName, WebNNContextOptions {
    context?: never;
  }
  interface WebNNOptionsWithMLContext
    extends WebNNExecutionProviderName,
      Omit<WebNNContextOptions, 'deviceType'>,
      Required<Pick<WebNNContextOptions, 'deviceType'>> {
    // The application's own MLContext; the package does not destroy it.
    context: GlobalType<'MLContext'>;
  }
  interface WebNNOptionsWebGpu extends WebNNExecutionProviderName {
    context: GlobalType<'MLContext'>;
    gpuDevice: GlobalType<'GPUDevice'>;
  }
  type WebNNExecutionProviderOption =
    | WebNNOptionsWithoutMLContext
    | WebNNOptionsWithMLContext
    | WebNNOptionsWebGpu;

  // All options of 'webnn' that this package knows. Other members are passed to createContext().
  interface WebNNOptions extends WebNNExecutionProviderName, WebNNContextOptions {
    readonly accelerated?: boolean;
    readonly context?: object;
    // A GPUDevice from which the context is made.
    readonly gpuDevice?: object;
    // The MLGraphBuilder class for `context`, if it is not the global one.
    readonly graphBuilder?: new (context: never) => object;
  }

  interface QnnExecutionProviderOption extends ExecutionProviderOption {
    readonly name: 'qnn';
    backendType?: string;
    backendPath?: string;
    enableFp16Precision?: boolean;
  }
  interface CoreMLExecutionProviderOption extends ExecutionProviderOption {
    readonly name: 'coreml';
    coreMlFlags?: number;
    useCPUOnly?: boolean;
    useCPUAndGPU?: boolean;
    enableOnSubgraph?: boolean;
    onlyEnableDeviceWithANE?: boolean;
  }
  interface NnapiExecutionProviderOption extends ExecutionProviderOption {
    readonly name: 'nnapi';
    useFP16?: boolean;
    useNCHW?: boolean;
    cpuDisabled?: boolean;
    cpuOnly?: boolean;
  }

  interface RunOptions {
    logSeverityLevel?: LogSeverityLevel;
    logVerbosityLevel?: number;
    terminate?: boolean;
    tag?: string;
    // Config entries of the run, as in SessionOptions.
    extra?: Record<string, unknown>;
    // Set by a run whose config entry 'tenon.run_report' is '1'.
    report?: RunReport;
  }

  interface RunReport {
    run_id: number;
    duration_us: number;
    attempts: number;
    fallback: boolean;
    reason: string;
    nodes: number;
    providers: Array<{name: string; nodes: number; time_us: number}>;
    memory: Array<{
      location: string;
      device_id: number;
      peak_bytes: number;
      static_bytes: number;
      dynamic_bytes: number;
    }>;
  }

  interface ValueMetadataBase {
    readonly name: string;
  }
  interface NonTensorValueMetadata extends ValueMetadataBase {
    readonly isTensor: false;
  }
  interface TensorValueMetadata extends ValueMetadataBase {
    readonly isTensor: true;
    readonly type: Tensor.Type;
    // A dimension is its size, its name, or '' if the model does not say.
    readonly shape: ReadonlyArray<number | string>;
  }
  type ValueMetadata = NonTensorValueMetadata | TensorValueMetadata;
}

export interface InferenceSession {
  // Runs the model once. Without fetches the result has all outputs. A tensor among the fetches is
  // written to and returned itself. The arguments may be changed once the call has returned, except
  // MLTensors and tensors among the fetches.
  run(
    feeds: InferenceSession.FeedsType,
    options?: InferenceSession.RunOptions,
  ): Promise<InferenceSession.ReturnType>;
  run(
    feeds: InferenceSession.FeedsType,
    fetches: InferenceSession.FetchesType,
    options?: InferenceSession.RunOptions,
  ): Promise<InferenceSession.ReturnType>;
  release(): Promise<void>;
  // A trace starts when the session is created, if the option enableProfiling requests it.
  startProfiling(): void;
  // Ends the session's trace and prints it to the console, an event per line.
  endProfiling(): void;
  readonly inputNames: readonly string[];
  readonly outputNames: readonly string[];
  readonly inputMetadata: readonly InferenceSession.ValueMetadata[];
  readonly outputMetadata: readonly InferenceSession.ValueMetadata[];
}

export interface InferenceSessionFactory {
  // Loads a model: a path in Node, a URL elsewhere, or its bytes.
  create(uri: string, options?: InferenceSession.SessionOptions): Promise<InferenceSession>;
  create(
    buffer: ArrayBufferLike,
    options?: InferenceSession.SessionOptions,
  ): Promise<InferenceSession>;
  create(
    buffer: ArrayBufferLike,
    byteOffset: number,
    byteLength?: number,
    options?: InferenceSession.SessionOptions,
  ): Promise<InferenceSession>;
  create(buffer: Uint8Array, options?: InferenceSession.SessionOptions): Promise<InferenceSession>;
}

export const InferenceSession: InferenceSessionFactory = Session;
