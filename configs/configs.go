// Package configs carries the configuration files of this folder in the binary.
package configs

import "embed"

// Files holds every *.toml file of this folder under its own name.
//
//go:embed *.toml
var Files embed.FS
