// Package configs carries the configuration files of this folder in the binary.
package configs

import "embed"

// Files holds every *.toml file of this folder, and of ablations, under its own name.
//
//go:embed *.toml ablations/*.toml
var Files embed.FS
