// Uses every type that onnxruntime-common 1.30 exports, as applications do. typings.test.mjs compiles
// it with the declarations of the packages.
import ortDefault, * as ort from 'onnxruntime-web';
import {
  env,
  InferenceSession,
  registerBackend,
  Tensor,
  TRACE,
  TRACE_EVENT_BEGIN,
  TRACE_EVENT_END,
  TRACE_FUNC_BEGIN,
  TRACE_FUNC_END,
} from 'onnxruntime-web';
import type {
  Backend,
  ConversionUtils,
  CpuPinnedConstructorParameters,
  Env,
  ExternalDataFileDescription,
  ExternalDataFileType,
  FileBlob,
  FileData,
  FileType,
  FileUrlOrPath,
  GpuBufferConstructorParameters,
  ImageFormat,
  ImageTensorLayout,
  InferenceSessionFactory,
  InferenceSessionHandler,
  MLTensorConstructorParameters,
  NonTensorType,
  OnnxModelOptions,
  OnnxValue,
  OnnxValueDataLocation,
  OptionResizedDimensions,
  OptionsDimensions,
  OptionsFormat,
  OptionsNormalizationParameters,
  OptionsTensorDataType,
  OptionsTensorFormat,
  OptionsTensorLayout,
  SessionHandler,
  TensorConstructor,
  TensorFactory,
  TensorFromGpuBufferOptions,
  TensorFromImageBitmapOptions,
  TensorFromImageDataOptions,
  TensorFromImageElementOptions,
  TensorFromMLTensorOptions,
  TensorFromTextureOptions,
  TensorFromUrlOptions,
  TensorToDataUrlOptions,
  TensorToImageDataOptions,
  TextureConstructorParameters,
  TypedTensor,
} from 'onnxruntime-web';
import * as all from 'onnxruntime-web/all';
import * as jspi from 'onnxruntime-web/jspi';
import * as wasm from 'onnxruntime-web/wasm';
import * as webgl from 'onnxruntime-web/webgl';
import * as webgpu from 'onnxruntime-web/webgpu';

// Whether two types are the same.
type Same<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const same = <A, B>(_is: Same<A, B>): void => {};

// ---- tensors ----

const float32 = new Tensor(Float32Array.of(1, 2), [2]);
same<typeof float32, TypedTensor<'float32'>>(true);
same<(typeof float32)['data'], Float32Array>(true);
same<typeof float32.type, 'float32'>(true);
const int64: TypedTensor<'int64'> = new Tensor('int64', [1, 2]);
const more: TypedTensor<'uint64'> = new Tensor('uint64', [1n, 2n], [2]);
const bools: TypedTensor<'bool'> = new Tensor([true, false]);
const named: TypedTensor<'bool'> = new Tensor('bool', [true, false]);
const texts: TypedTensor<'string'> = new Tensor(['a']);
const words: TypedTensor<'string'> = new Tensor('string', ['a'], [1]);
const clamped: TypedTensor<'uint8'> = new Tensor(Uint8ClampedArray.of(1));
const bytes: TypedTensor<'uint8'> = new Tensor('uint8', Uint8ClampedArray.of(1));
const half: TypedTensor<'float16'> = new Tensor('float16', Uint16Array.of(1));
const nibbles: TypedTensor<'uint4'> = new Tensor('uint4', Uint8Array.of(1), [2]);
const int8: TypedTensor<'int8'> = new Tensor(Int8Array.of(1));
const uint16: TypedTensor<'uint16'> = new Tensor(Uint16Array.of(1));
const int16: TypedTensor<'int16'> = new Tensor(Int16Array.of(1));
const int32: TypedTensor<'int32'> = new Tensor(Int32Array.of(1));
const float64: TypedTensor<'float64'> = new Tensor(Float64Array.of(1));
const uint32: TypedTensor<'uint32'> = new Tensor(Uint32Array.of(1));
const big: TypedTensor<'int64'> = new Tensor(BigInt64Array.of(1n));
const unsigned: TypedTensor<'uint64'> = new Tensor(BigUint64Array.of(1n));
const general = (type: Tensor.Type, data: Tensor.DataType): Tensor => new Tensor(type, data);
const tensors: Tensor[] = [
  float32, int64, more, bools, named, texts, words, clamped, bytes, half, nibbles, int8, uint16,
  int16, int32, float64, uint32, big, unsigned,
];

const location: Tensor.DataLocation = float32.location;
const dims: readonly number[] = float32.dims;
const size: number = float32.size;
const downloaded: Promise<Float32Array> = float32.getData(true);
const reshaped: TypedTensor<'float32'> = float32.reshape([1, 2]);
const texture: Tensor.TextureType = float32.texture;
const gpuBuffer: Tensor.GpuBufferType = float32.gpuBuffer;
const mlTensor: Tensor.MLTensorType = float32.mlTensor;
float32.dispose();
const element: Tensor.ElementType = 'text';
const elements: Tensor.ElementTypeMap['int64'] = 1n;
const array: Tensor.DataTypeMap['uint4'] = new Uint8Array();
const onDevice: [
  Tensor.CpuPinnedDataTypes, Tensor.TextureDataTypes, Tensor.GpuBufferDataTypes,
  Tensor.MLTensorDataTypes,
] = ['int8', 'float32', 'uint32', 'int4'];

const layout: ImageTensorLayout = 'NHWC';
const format: ImageFormat = 'RBG';
const norm: OptionsNormalizationParameters = {norm: {mean: [1, 2, 3], bias: 4}};
const parts: OptionsFormat &
  OptionsTensorFormat &
  OptionsTensorDataType &
  OptionsTensorLayout &
  OptionsDimensions &
  OptionResizedDimensions = {
  format, tensorFormat: format, dataType: 'uint8', tensorLayout: layout, height: 1, width: 1,
  resizedHeight: 2, resizedWidth: 2,
};
const fromData: TensorFromImageDataOptions = {...norm, tensorFormat: 'BGR'};
const fromElement: TensorFromImageElementOptions = fromData;
const fromBitmap: TensorFromImageBitmapOptions = fromData;
const fromUrl: TensorFromUrlOptions = {...fromData, width: 3, height: 4};
const fromTexture: TensorFromTextureOptions<'float32'> = {width: 1, height: 1, format};
const fromGpu: TensorFromGpuBufferOptions<'int32'> = {
  dims, dataType: 'int32', download: async () => new Int32Array(), dispose: () => {},
};
const fromMl: TensorFromMLTensorOptions<'int64'> = {dims, dataType: 'int64'};
const toUrl: TensorToDataUrlOptions = {format, tensorLayout: layout, ...norm};
const toData: TensorToImageDataOptions = toUrl;
const images = async (data: ImageData, element: HTMLImageElement, bitmap: ImageBitmap) => {
  const made: Array<TypedTensor<'float32'> | TypedTensor<'uint8'>> = [
    await Tensor.fromImage(data), await Tensor.fromImage(element, fromElement),
    await Tensor.fromImage(bitmap, fromBitmap), await Tensor.fromImage('a.png', fromUrl),
  ];
  const convertible: ConversionUtils = made[0];
  const [url, image]: [string, ImageData] = [
    convertible.toDataURL(toUrl), convertible.toImageData(toData),
  ];
  return [url, image];
};
const factory: TensorFactory = Tensor;
const made: [
  TypedTensor<'float32'>, TypedTensor<'int32'>, TypedTensor<'int64'>, TypedTensor<'int8'>,
] = [
  factory.fromTexture(texture, fromTexture), factory.fromGpuBuffer(gpuBuffer, fromGpu),
  factory.fromMLTensor(mlTensor, fromMl), factory.fromPinnedBuffer('int8', Int8Array.of(1)),
];
const constructor: TensorConstructor = Tensor;
const pinned: CpuPinnedConstructorParameters = {
  location: 'cpu-pinned', type: 'int8', data: new Int8Array(), dims,
};
const textured: TextureConstructorParameters = {
  location: 'texture', type: 'float32', texture, dims, download: async () => new Float32Array(),
};
const buffered: GpuBufferConstructorParameters<'bool'> = {
  location: 'gpu-buffer', type: 'bool', gpuBuffer, dims, dispose() {},
};
const onMl: MLTensorConstructorParameters<'uint4'> = {
  location: 'ml-tensor', type: 'uint4', mlTensor, dims,
};
// @ts-expect-error: the tensor has another type
const wrong: TypedTensor<'float32'> = new Tensor('string', ['a']);
// @ts-expect-error: the data of a tensor cannot be replaced
float32.data = new Float32Array();

// ---- sessions ----

const data: FileData = new Uint8Array();
const place: FileUrlOrPath = 'weights.bin';
const blob: FileBlob = new Blob();
const file: FileType[] = [data, place, blob];
const external: ExternalDataFileDescription = {path: place, data: file[0]};
const files: ExternalDataFileType[] = [external, place];
const modelOptions: OnnxModelOptions = {externalData: files};
const providers: InferenceSession.ExecutionProviderConfig[] = [
  'wasm',
  'a name of another runtime',
  {name: 'cpu', useArena: true},
  {name: 'webgl'},
  {name: 'cuda', deviceId: 0},
  {name: 'dml', deviceId: 0},
  {name: 'tensorrt', deviceId: 0},
  {name: 'xnnpack'},
  {name: 'qnn', backendType: 'htp', backendPath: '', enableFp16Precision: true},
  {name: 'coreml', coreMlFlags: 1, useCPUOnly: true, useCPUAndGPU: true, enableOnSubgraph: true,
    onlyEnableDeviceWithANE: true},
  {name: 'nnapi', useFP16: true, useNCHW: true, cpuDisabled: true, cpuOnly: true},
  {name: 'webgpu', preferredLayout: 'NHWC', forceCpuNodeNames: [], validationMode: 'full',
    enableRobustness: true, storageBufferCacheMode: 'bucket', uniformBufferCacheMode: 'simple',
    queryResolveBufferCacheMode: 'disabled', defaultBufferCacheMode: 'lazyRelease', device: 1},
  {name: 'webnn', deviceType: 'npu', numThreads: 2, powerPreference: 'low-power'},
];
const providerName: InferenceSession.ExecutionProviderName = 'webnn';
const maps: Array<InferenceSession.ExecutionProviderOptionMap['webnn' | 'wasm']> = [
  {name: 'wasm'},
  {name: providerName, context: {}, gpuDevice: {}} as InferenceSession.WebNNOptionsWebGpu,
];
const options: [
  InferenceSession.ExecutionProviderOption, InferenceSession.CpuExecutionProviderOption,
  InferenceSession.CudaExecutionProviderOption, InferenceSession.DmlExecutionProviderOption,
  InferenceSession.TensorRtExecutionProviderOption,
  InferenceSession.WebAssemblyExecutionProviderOption, InferenceSession.WebGLExecutionProviderOption,
  InferenceSession.XnnpackExecutionProviderOption, InferenceSession.WebGpuExecutionProviderOption,
  InferenceSession.WebNNExecutionProviderOption, InferenceSession.QnnExecutionProviderOption,
  InferenceSession.CoreMLExecutionProviderOption, InferenceSession.NnapiExecutionProviderOption,
] = [
  {name: 'any'}, {name: 'cpu'}, {name: 'cuda'}, {name: 'dml'}, {name: 'tensorrt'}, {name: 'wasm'},
  {name: 'webgl'}, {name: 'xnnpack'}, {name: 'webgpu'}, {name: 'webnn'}, {name: 'qnn'},
  {name: 'coreml'}, {name: 'nnapi'},
];
const contextOptions: InferenceSession.WebNNContextOptions = {deviceType: 'gpu'};
const without: InferenceSession.WebNNOptionsWithoutMLContext = {name: 'webnn', ...contextOptions};
const withContext: InferenceSession.WebNNOptionsWithMLContext = {
  name: 'webnn', context: {}, deviceType: 'gpu',
};
const sessionOptions: InferenceSession.SessionOptions = {
  ...modelOptions, executionProviders: providers, intraOpNumThreads: 1, interOpNumThreads: 1,
  freeDimensionOverrides: {batch: 1}, graphOptimizationLevel: 'layout', enableCpuMemArena: true,
  enableMemPattern: true, executionMode: 'parallel', optimizedModelFilePath: 'a.onnx',
  enableProfiling: true, profileFilePrefix: 'a', logId: 'a', logSeverityLevel: 4,
  logVerbosityLevel: 0, preferredOutputLocation: {y: 'ml-tensor'}, enableGraphCapture: true,
  extra: {session: {a: '1'}},
};
const runOptions: InferenceSession.RunOptions = {
  logSeverityLevel: 0, logVerbosityLevel: 1, terminate: false, tag: 'a', extra: {a: {b: 1}},
};
const value: OnnxValue = float32;
const values: InferenceSession.OnnxValueMapType = {x: value};
const nullable: InferenceSession.NullableOnnxValueMapType = {x: value, y: null};
const feeds: InferenceSession.FeedsType = values;
const fetches: InferenceSession.FetchesType[] = [['y'], nullable];
const somewhere: OnnxValueDataLocation = location;
const never = (nothing: NonTensorType): OnnxValue => nothing;

async function use(buffer: ArrayBufferLike): Promise<void> {
  const creator: InferenceSessionFactory = InferenceSession;
  const session: InferenceSession = await creator.create('a.onnx', sessionOptions);
  await InferenceSession.create(buffer);
  await InferenceSession.create(buffer, 0, 1, sessionOptions);
  await InferenceSession.create(new Uint8Array(buffer), sessionOptions);
  const results: InferenceSession.ReturnType = await session.run(feeds, fetches[0], runOptions);
  const again = await session.run(feeds, runOptions);
  const output: Tensor = again['y'];
  const names: ReadonlyArray<string> = [...session.inputNames, ...session.outputNames];
  const metadata: readonly InferenceSession.ValueMetadata[] = [
    ...session.inputMetadata, ...session.outputMetadata,
  ];
  for (const each of metadata) {
    const base: InferenceSession.ValueMetadataBase = each;
    if (each.isTensor) {
      const tensor: InferenceSession.TensorValueMetadata = each;
      const shape: ReadonlyArray<number | string> = tensor.shape;
      use2(base.name, shape, tensor.type);
    } else {
      const other: InferenceSession.NonTensorValueMetadata = each;
      use2(other);
    }
  }
  session.startProfiling();
  session.endProfiling();
  await session.release();
  use2(results, output, names);
}
function use2(..._values: unknown[]): void {}

// ---- backends ----

const handler: InferenceSessionHandler = {
  inputNames: [],
  outputNames: [],
  inputMetadata: [],
  outputMetadata: [],
  startProfiling() {},
  endProfiling() {},
  async dispose() {},
  async run(
    given: SessionHandler.FeedsType,
    wanted: SessionHandler.FetchesType,
    how: InferenceSession.RunOptions,
  ): Promise<SessionHandler.ReturnType> {
    use2(given, wanted, how);
    return {};
  },
};
const backend: Backend = {
  async init(backendName: string) {
    use2(backendName);
  },
  async createInferenceSessionHandler(
    uriOrBuffer: string | Uint8Array,
    given?: InferenceSession.SessionOptions,
  ): Promise<InferenceSessionHandler> {
    use2(uriOrBuffer, given);
    return handler;
  },
};
registerBackend('mine', backend, 1);

// ---- settings ----

const settings: Env = env;
settings.logLevel = 'verbose';
settings.debug = true;
settings.trace = false;
settings['another'] = 1;
const flags: Env.WebAssemblyFlags = env.wasm;
flags.numThreads = 1;
flags.simd = 'relaxed';
flags.trace = true;
flags.initTimeout = 1;
flags.proxy = true;
flags.wasmBinary = new Uint8Array();
const prefix: Env.WasmPathPrefix = '/dist/';
const paths: Env.WasmFilePaths = {wasm: new URL('https://example.org/a.wasm'), mjs: 'a.mjs'};
const either: Env.WasmPrefixOrFilePaths[] = [prefix, paths];
flags.wasmPaths = either[0];
const gl: Env.WebGLFlags = env.webgl;
gl.contextId = 'webgl2';
gl.matmulMaxBatchSize = 1;
gl.textureCacheMode = 'full';
gl.pack = true;
gl.async = true;
const gpu: Env.WebGpuFlags = env.webgpu;
gpu.profilingMode = 'off';
gpu.profiling = {
  mode: 'default',
  ondata: (measured: Env.WebGpuProfilingData) => {
    const first: Env.WebGpuProfilingDataV1 = measured;
    const metadata: readonly Env.WebGpuProfilingDataV1TensorMetadata[] = first.inputsMetadata;
    use2(metadata, first.kernelName, first.endTime - first.startTime);
  },
};
gpu.powerPreference = 'low-power';
gpu.forceFallbackAdapter = true;
gpu.validateInputContent = true;
use2(gpu.adapter, gpu.device, gl.context);
const versions: Array<string | undefined> = [
  env.versions.common, env.versions.web, env.versions.node, env.versions['react-native'],
];

// ---- the namespace ----

TRACE('CPU', 'a');
TRACE_FUNC_BEGIN('a');
TRACE_FUNC_END();
TRACE_EVENT_BEGIN('a');
TRACE_EVENT_END('a');
same<typeof all.Tensor, typeof ort.Tensor>(true);
for (const entry of [ort, ortDefault, all, jspi, wasm, webgl, webgpu]) {
  const session: Promise<InferenceSession> = entry.InferenceSession.create('a.onnx');
  const tensor: ort.Tensor = new entry.Tensor([true]);
  const output: ort.InferenceSession.SessionOptions = {};
  use2(session, tensor, output, entry.env.wasm);
}

export {
  buffered, clamped, constructor, downloaded, element, elements, array, general, images, int32, made,
  maps, never, onDevice, onMl, options, parts, pinned, reshaped, size, somewhere, tensors, textured,
  use, versions, withContext, wrong, without,
};
