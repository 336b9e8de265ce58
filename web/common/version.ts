// Versions that env.versions reports.

// The version of onnxruntime-common whose API this is.
export const API_VERSION = '1.30.0';

// Tenon's own, as in CMakeLists.txt.
export const TENON_VERSION = '0.1.0';
