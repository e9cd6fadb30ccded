// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
)

// manifests are where what users apply lies.
const manifests = "../../deploy/kubernetes"

// object is one document of a manifest.
type object struct {
	file string
	raw  []byte // JSON
	runtime.Object
}

// readManifest returns the documents of a file.
func readManifest(t *testing.T, file string) []object {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(manifests, file))
	if err != nil {
		t.Fatal(err)
	}
	var all []object
	for d := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096); ; {
		var raw runtime.RawExtension
		if err := d.Decode(&raw); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if len(bytes.TrimSpace(raw.Raw)) == 0 || string(raw.Raw) == "null" {
			continue
		}
		obj, _, err := scheme.Codecs.UniversalDeserializer().Decode(raw.Raw, nil, nil)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all = append(all, object{file, raw.Raw, obj})
	}
}

// path is where an object of this kind is made.
func (o object) path(t *testing.T) string {
	t.Helper()
	meta := o.meta(t)
	switch o.Object.(type) {
	case *v1.Namespace:
		return "/api/v1/namespaces"
	case *v1.ServiceAccount:
		return "/api/v1/namespaces/" + meta.GetNamespace() + "/serviceaccounts"
	case *rbacv1.ClusterRole:
		return "/apis/rbac.authorization.k8s.io/v1/clusterroles"
	case *rbacv1.ClusterRoleBinding:
		return "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
	case *appsv1.DaemonSet:
		return "/apis/apps/v1/namespaces/" + meta.GetNamespace() + "/daemonsets"
	case *appsv1.StatefulSet:
		return "/apis/apps/v1/namespaces/" + meta.GetNamespace() + "/statefulsets"
	default:
		t.Fatalf("%s: no path for a %T", o.file, o.Object)
		return ""
	}
}

func (o object) meta(t *testing.T) metav1.Object {
	t.Helper()
	meta, ok := o.Object.(metav1.Object)
	if !ok {
		t.Fatalf("%s: a %T has no metadata", o.file, o.Object)
	}
	return meta
}

// apply makes the object as it is written, with the server's strictest validation,
// and removes it at the end. It may be there already.
func (o object) apply(t *testing.T) {
	t.Helper()
	client := plane.client.CoreV1().RESTClient()
	path := o.path(t)
	err := client.Post().AbsPath(path).Param("fieldValidation", "Strict").
		SetHeader("Content-Type", "application/json").Body(o.raw).Do(t.Context()).Error()
	if apierrors.IsAlreadyExists(err) {
		return
	}
	if err != nil {
		t.Fatalf("%s: %v", o.file, err)
	}
	if _, ok := o.Object.(*v1.Namespace); ok {
		return // it would stay, terminating: nobody finalises it
	}
	t.Cleanup(func() {
		name := o.meta(t).GetName()
		// The test's own context has ended by now.
		if err := client.Delete().AbsPath(path, name).Do(context.Background()).Error(); err != nil {
			t.Errorf("delete %s: %v", name, err)
		}
	})
}

// applyManifests makes all objects of some files.
func applyManifests(t *testing.T, files ...string) []object {
	t.Helper()
	var all []object
	for _, file := range files {
		for _, o := range readManifest(t, file) {
			o.apply(t)
			all = append(all, o)
		}
	}
	return all
}

// TestManifests has the API server validate what users apply, and the pods that
// controllers would make of it.
func TestManifests(t *testing.T) {
	entries, err := os.ReadDir(manifests)
	if err != nil {
		t.Fatal(err)
	}
	files := []string{"namespace.yaml"}
	for _, e := range entries {
		if filepath.Ext(e.Name()) == ".yaml" && !slices.Contains(files, e.Name()) {
			files = append(files, e.Name())
		}
	}
	accounts := map[string]bool{}
	var templates []v1.PodTemplateSpec
	var names []string
	for _, o := range applyManifests(t, files...) {
		meta := o.meta(t)
		names = append(names, fmt.Sprintf("%T %s", o.Object, meta.GetName()))
		switch kind := o.Object.(type) {
		case *v1.ServiceAccount:
			accounts[meta.GetName()] = true
		case *appsv1.DaemonSet:
			templates = append(templates, kind.Spec.Template)
		case *appsv1.StatefulSet:
			template := kind.Spec.Template
			for _, claim := range kind.Spec.VolumeClaimTemplates { // as the controller does
				source := v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name + "-" + kind.Name + "-0"}}
				template.Spec.Volumes = append(template.Spec.Volumes, v1.Volume{Name: claim.Name, VolumeSource: source})
			}
			templates = append(templates, template)
		}
	}
	t.Logf("accepted: %s", strings.Join(names, ", "))
	if len(templates) == 0 {
		t.Fatal("no workloads")
	}
	// A controller of the control plane makes this one; nobody does here.
	for i, template := range templates {
		if !accounts[template.Spec.ServiceAccountName] {
			t.Errorf("service account %q is in no manifest", template.Spec.ServiceAccountName)
		}
		pod := &v1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
		pod.Name = fmt.Sprintf("template-%d", i)
		options := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict}
		if _, err := plane.client.CoreV1().Pods("statusstore").Create(t.Context(), pod, options); err != nil {
			t.Errorf("the pod of %v: %v", template.Labels, err)
		}
		checkCommand(t, template.Spec.Containers[0])
	}
}

// checkCommand asks the program whether it understands the container's arguments.
func checkCommand(t *testing.T, c v1.Container) {
	t.Helper()
	env := []string{"PATH=" + os.Getenv("PATH")}
	for _, e := range c.Env {
		value := e.Value
		if e.ValueFrom != nil {
			value = "from-the-pod"
		}
		env = append(env, e.Name+"="+value)
	}
	out, err := runProgram(t, env, programs.agent, append(slices.Clone(c.Args), "--print-config")...)
	if err != nil || !strings.Contains(out, "mode: record") {
		t.Errorf("%v: %v\n%s", c.Args, err, out)
	}
	if !strings.Contains(out, "allNodes: true") && !strings.Contains(out, "node: from-the-pod") {
		t.Errorf("%v: neither a node nor all of them:\n%s", c.Args, out)
	}
}
