// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateListOptions refuses combinations that have no meaning.
func validateListOptions(options metav1.ListOptions) error {
	check := validateListMatch
	if options.Watch {
		check = validateWatchMatch
	}
	errs := check(options)
	if options.ResourceVersionMatch != "" && options.Continue != "" {
		errs = append(errs, field.Forbidden(field.NewPath("resourceVersionMatch"), "not together with continue"))
	}
	if len(errs) > 0 {
		return apierrors.NewInvalid(metav1.SchemeGroupVersion.WithKind("ListOptions").GroupKind(), "", errs)
	}
	return nil
}

func validateListMatch(options metav1.ListOptions) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("resourceVersionMatch")
	switch options.ResourceVersionMatch {
	case "":
	case metav1.ResourceVersionMatchNotOlderThan, metav1.ResourceVersionMatchExact:
		if options.ResourceVersion == "" {
			errs = append(errs, field.Forbidden(path, "needs a resourceVersion"))
		}
		if options.ResourceVersionMatch == metav1.ResourceVersionMatchExact && options.ResourceVersion == "0" {
			errs = append(errs, field.Forbidden(path, "there is no version 0"))
		}
	default:
		errs = append(errs, field.NotSupported(path, options.ResourceVersionMatch,
			[]metav1.ResourceVersionMatch{metav1.ResourceVersionMatchExact, metav1.ResourceVersionMatchNotOlderThan}))
	}
	if options.SendInitialEvents != nil {
		errs = append(errs, field.Forbidden(field.NewPath("sendInitialEvents"), "only for a watch"))
	}
	return errs
}

func validateWatchMatch(options metav1.ListOptions) field.ErrorList {
	path := field.NewPath("resourceVersionMatch")
	match := options.ResourceVersionMatch
	switch {
	case options.SendInitialEvents == nil && match != "":
		return field.ErrorList{field.Forbidden(path, "only together with sendInitialEvents")}
	case options.SendInitialEvents != nil && match != metav1.ResourceVersionMatchNotOlderThan:
		return field.ErrorList{field.Forbidden(path, "sendInitialEvents needs "+string(metav1.ResourceVersionMatchNotOlderThan))}
	}
	return nil
}
