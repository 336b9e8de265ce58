// Keys for OrtEnvCreationOptions::config_entries.
#pragma once

// "1": providers may make devices that stand for no hardware. Default: "0".
static const char* const kOrtEnvAllowVirtualDevices = "allow_virtual_devices";
