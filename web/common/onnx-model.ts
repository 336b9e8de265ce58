// What a model and its files are given as.

export type FileUrlOrPath = string;
export type FileBlob = Blob;
export type FileData = Uint8Array | ArrayBufferLike;
// The path or address of a file, or its content.
export type FileType = FileUrlOrPath | FileBlob | FileData;

// A file with weights: its path in the model, and where it is.
export interface ExternalDataFileDescription {
  data: FileType;
  path: string;
}

// A file's path alone is also its address.
export type ExternalDataFileType = ExternalDataFileDescription | FileUrlOrPath;

export interface OnnxModelOptions {
  // The files with the model's weights.
  externalData?: readonly ExternalDataFileType[];
}
