// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// fileValue is what the configuration file says for a key: a plain value, or a
// list of them, as written there. YAML would read n as false in one program and as
// text in another, 0123 as 83, and 1e3 as 1000; a node has the name that stands there.
type fileValue struct {
	values []string
	list   bool
}

func (v fileValue) set(f *pflag.Flag) error {
	if several, ok := f.Value.(pflag.SliceValue); ok {
		if err := several.Replace(v.values); err != nil {
			return usagef("configuration file: %s: %q: %w", keyOf(f), v.values, err)
		}
		return nil
	}
	if v.list {
		return usagef("configuration file: %s: want one plain value", keyOf(f))
	}
	if err := f.Value.Set(v.values[0]); err != nil {
		return usagef("configuration file: %s: %q: %w", keyOf(f), v.values[0], wanted(f, err))
	}
	return nil
}

// readConfig reads a configuration file: one flat mapping of keys to plain values
// and lists of them, with the version of its form.
func readConfig(path string) (map[string]fileValue, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	config, err := parseConfig(data)
	if err != nil {
		return nil, usagef("configuration file %s: %w", path, err)
	}
	return config, nil
}

func parseConfig(data []byte) (map[string]fileValue, error) {
	missing := fmt.Errorf("version is missing; this release reads \"version: %d\"", configVersion)
	var document, more yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(data))
	switch err := dec.Decode(&document); {
	case errors.Is(err, io.EOF):
		return nil, missing
	case err != nil:
		return nil, err
	}
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, errors.New("it goes on after the end of its first document; want one document only")
	}
	root := document.Content[0]
	if root.ShortTag() == "!!null" {
		return nil, missing
	}
	if root.Kind != yaml.MappingNode {
		return nil, errors.New("want a mapping of keys to values")
	}
	config := make(map[string]fileValue, len(root.Content)/2)
	var version *yaml.Node
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			return nil, fmt.Errorf("line %d: a key is no word", key.Line)
		}
		if _, twice := config[key.Value]; twice || key.Value == "version" && version != nil {
			return nil, fmt.Errorf("line %d: key %q is there twice", key.Line, key.Value)
		}
		if key.Value == "version" {
			version = value
			continue
		}
		v, ok := fileValueOf(value)
		if !ok {
			return nil, fmt.Errorf("line %d: %s: want one plain value, or a list of them", value.Line, key.Value)
		}
		config[key.Value] = v
	}
	switch {
	case version == nil || version.ShortTag() == "!!null":
		return nil, missing
	case version.ShortTag() != "!!int" || version.Value != strconv.Itoa(configVersion):
		shown := version.Value
		if version.ShortTag() == "!!str" {
			shown = strconv.Quote(shown)
		}
		return nil, fmt.Errorf("version %s is unknown; this release reads \"version: %d\"", shown, configVersion)
	}
	return config, nil
}

func fileValueOf(value *yaml.Node) (fileValue, bool) {
	value = anchored(value)
	elements := []*yaml.Node{value}
	v := fileValue{list: value.Kind == yaml.SequenceNode, values: []string{}}
	if v.list {
		elements = value.Content
	}
	for _, e := range elements {
		e = anchored(e)
		if e.Kind != yaml.ScalarNode || e.ShortTag() == "!!null" {
			return v, false
		}
		v.values = append(v.values, e.Value)
	}
	return v, true
}

// anchored is what an alias stands for.
func anchored(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}
