// Keys for OrtEnvCreationOptions::config_entries.
#pragma once

// "1": providers may make devices that stand for no hardware. Default: "0", and "1" while a library
// is registered under a name that ends in ".virtual".
static const char* const kOrtEnvAllowVirtualDevices = "allow_virtual_devices";
