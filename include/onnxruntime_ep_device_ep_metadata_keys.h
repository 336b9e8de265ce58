// Keys in the metadata of devices, providers and models.
#pragma once

// Version of the provider.
static const char* const kOrtEpDevice_EpMetadataKey_Version = "version";

// File of a plugin provider.
static const char* const kOrtEpDevice_EpMetadataKey_LibraryPath = "library_path";

// Version of the device's driver.
static const char* const kOrtEpDevice_EpMetadataKey_OSDriverVersion = "os_driver_version";

// "1": the device stands for no hardware.
static const char* const kOrtHardwareDevice_MetadataKey_IsVirtual = "is_virtual";

// OrtWeightlessSupport bits of the provider on this device.
static const char* const kOrtEpDevice_EpMetadataKey_WeightlessSupport = "weightless_support";

// Prefix of the compatibility text of each provider in a compiled model; the provider's name
// follows.
static const char* const kOrtModelMetadata_EpCompatibilityInfoPrefix = "ep_compatibility_info.";
