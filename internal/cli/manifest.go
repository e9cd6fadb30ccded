// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	jsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// manifests are the pods of a file and what is worth a warning in it.
type manifests struct {
	pods     []*v1.Pod
	warnings []string
}

// manifestError says which document is wrong.
type manifestError struct {
	document int // from 1
	item     int // from 1 within a list; 0 for none
	err      error
}

func (e *manifestError) Error() string {
	if e.item > 0 {
		return fmt.Sprintf("document %d, item %d: %v", e.document, e.item, e.err)
	}
	return fmt.Sprintf("document %d: %v", e.document, e.err)
}

func (e *manifestError) Unwrap() error { return e.err }

var errNoPods = errors.New("no pod in it")

// readManifests decodes Pods and lists of Pods, YAML or JSON, any number of
// documents. Nothing is returned when anything is wrong: a file is meant whole.
func readManifests(r io.Reader, namespace string) (manifests, error) {
	var all manifests
	documents := utilyaml.NewYAMLReader(bufio.NewReader(r))
	for n := 1; ; n++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return manifests{}, &manifestError{document: n, err: err}
		}
		// JSON documents may follow each other without a separator.
		for value, err := range values(document) {
			if err != nil {
				return manifests{}, &manifestError{document: n, err: err}
			}
			if err := all.add(value, n, 0, namespace); err != nil {
				return manifests{}, err
			}
		}
	}
	if len(all.pods) == 0 {
		return manifests{}, errNoPods
	}
	return all, nil
}

// wantNamespace refuses pods of another namespace than the one asked for.
func (m manifests) wantNamespace(namespace string) error {
	for _, pod := range m.pods {
		if pod.Namespace != namespace {
			return fmt.Errorf("pod %s/%s is not in the namespace of -n, %s", pod.Namespace, pod.Name, namespace)
		}
	}
	return nil
}

// values yields the JSON values of a document: many for JSON, one for YAML.
func values(document []byte) func(yield func([]byte, error) bool) {
	return func(yield func([]byte, error) bool) {
		if trimmed := bytes.TrimSpace(document); len(trimmed) > 0 && trimmed[0] == '{' {
			if concatenated, err := splitJSON(trimmed); err == nil {
				for _, value := range concatenated {
					if !yield(value, nil) {
						return
					}
				}
				return
			}
			// A YAML flow mapping begins with a brace, too.
		}
		value, err := yaml.YAMLToJSONStrict(document)
		if err == nil && string(value) == "null" {
			return // only comments
		}
		yield(value, err)
	}
}

func splitJSON(text []byte) ([][]byte, error) {
	var found [][]byte
	for dec := json.NewDecoder(bytes.NewReader(text)); ; {
		var value json.RawMessage
		if err := dec.Decode(&value); errors.Is(err, io.EOF) {
			return found, nil
		} else if err != nil {
			return nil, err
		}
		found = append(found, value)
	}
}

// add takes the pods out of one object.
func (m *manifests) add(value []byte, document, item int, namespace string) error {
	fail := func(err error) error { return &manifestError{document: document, item: item, err: err} }
	var head struct {
		APIVersion string            `json:"apiVersion"`
		Kind       string            `json:"kind"`
		Items      []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(value, &head); err != nil {
		return fail(fmt.Errorf("want a Pod: %w", err))
	}
	switch {
	case item == 0 && head.APIVersion == "v1" && (head.Kind == "List" || head.Kind == "PodList"):
		for i, raw := range head.Items {
			if err := m.add(raw, document, i+1, namespace); err != nil {
				return err
			}
		}
		return nil
	// The API server leaves out the kind of each item of a PodList.
	case item > 0 && head.APIVersion == "" && head.Kind == "":
	case head.APIVersion == "" || head.Kind == "":
		return fail(errors.New(`want "apiVersion: v1" and "kind: Pod"`))
	case head.APIVersion != "v1" || head.Kind != "Pod":
		return fail(fmt.Errorf("want v1 Pods, got %s %s", head.APIVersion, head.Kind))
	}
	pod, warnings, err := decodePod(value)
	if err != nil {
		return fail(err)
	}
	if pod.Namespace == "" {
		pod.Namespace = namespace
	}
	if err := checkPod(pod); err != nil {
		return fail(err)
	}
	m.pods = append(m.pods, pod)
	for _, w := range warnings {
		m.warnings = append(m.warnings, fmt.Sprintf("pod %s/%s: %s", pod.Namespace, pod.Name, w))
	}
	return nil
}

var podDecoder = func() *jsonserializer.Serializer {
	scheme := runtime.NewScheme()
	if err := v1.AddToScheme(scheme); err != nil {
		panic(err) // impossible: the scheme is empty
	}
	return jsonserializer.NewSerializerWithOptions(jsonserializer.DefaultMetaFactory, scheme, scheme,
		jsonserializer.SerializerOptions{Strict: true})
}()

// decodePod refuses a status with a field that this program doesn't know,
// because that field would get lost. Elsewhere such fields are normal (a newer
// API server wrote the manifest) and only worth a warning.
func decodePod(value []byte) (*v1.Pod, []string, error) {
	kind := v1.SchemeGroupVersion.WithKind("Pod")
	pod := &v1.Pod{}
	_, _, err := podDecoder.Decode(value, &kind, pod)
	strict, ok := runtime.AsStrictDecodingError(err)
	if !ok {
		return pod, nil, err
	}
	var warnings, lost []string
	for _, e := range strict.Errors() {
		text := e.Error()
		if strings.Contains(text, `"status`) || !strings.Contains(text, "unknown field") {
			lost = append(lost, text)
		} else {
			warnings = append(warnings, text)
		}
	}
	if len(lost) > 0 {
		return nil, nil, errors.New(strings.Join(lost, ", "))
	}
	return pod, warnings, nil
}

func checkPod(pod *v1.Pod) error {
	name := pod.Namespace + "/" + pod.Name
	switch {
	case pod.Name == "":
		return errors.New("metadata.name is missing")
	case pod.UID == "":
		return fmt.Errorf("pod %s: metadata.uid is missing; it says which pod is meant when one is recreated", name)
	case pod.Status.Phase == "":
		return fmt.Errorf("pod %s: status.phase is missing: there is no status to store", name)
	}
	return nil
}
