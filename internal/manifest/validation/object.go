package validation

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// The rules are from pkg/apis/core/validation of Kubernetes.

func validateObjectMeta(meta *metav1.ObjectMeta) field.ErrorList {
	return apivalidation.ValidateObjectMeta(meta, true, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
}

func validateConfigMap(c *corev1.ConfigMap) field.ErrorList {
	errs := validateObjectMeta(&c.ObjectMeta)
	size := 0
	for key, value := range c.Data {
		fieldPath := field.NewPath("data").Key(key)
		errs = append(errs, checkRule(key, fieldPath, validation.IsConfigMapKey)...)
		if _, twice := c.BinaryData[key]; twice {
			errs = append(errs, field.Invalid(fieldPath, key, "duplicate of key present in binaryData"))
		}
		size += len(value)
	}
	for key, value := range c.BinaryData {
		errs = append(errs, checkRule(key, field.NewPath("binaryData").Key(key), validation.IsConfigMapKey)...)
		size += len(value)
	}
	if size > corev1.MaxSecretSize {
		errs = append(errs, field.TooLong(field.NewPath("data"), "", corev1.MaxSecretSize))
	}
	return errs
}

// redactedValue replaces a secret value in messages.
const redactedValue = "<secret contents redacted>"

func validateSecret(s *corev1.Secret) field.ErrorList {
	errs := validateObjectMeta(&s.ObjectMeta)
	data, size := field.NewPath("data"), 0
	for key, value := range s.Data {
		errs = append(errs, checkRule(key, data.Key(key), validation.IsConfigMapKey)...)
		size += len(value)
	}
	if size > corev1.MaxSecretSize {
		errs = append(errs, field.TooLong(data, "", corev1.MaxSecretSize))
	}
	need := func(keys ...string) {
		for _, key := range keys {
			if _, ok := s.Data[key]; !ok {
				errs = append(errs, field.Required(data.Key(key), ""))
			}
		}
	}
	isJSON := func(key string) {
		need(key)
		if value, ok := s.Data[key]; ok && json.Unmarshal(value, &map[string]any{}) != nil {
			errs = append(errs, field.Invalid(data.Key(key), redactedValue, "is not a JSON object"))
		}
	}
	switch s.Type {
	case corev1.SecretTypeServiceAccountToken:
		if s.Annotations[corev1.ServiceAccountNameKey] == "" {
			errs = append(errs, field.Required(field.NewPath("metadata", "annotations").Key(corev1.ServiceAccountNameKey), ""))
		}
	case corev1.SecretTypeDockercfg:
		isJSON(corev1.DockerConfigKey)
	case corev1.SecretTypeDockerConfigJson:
		isJSON(corev1.DockerConfigJsonKey)
	case corev1.SecretTypeBasicAuth:
		_, user := s.Data[corev1.BasicAuthUsernameKey]
		if _, password := s.Data[corev1.BasicAuthPasswordKey]; !user && !password {
			need(corev1.BasicAuthUsernameKey, corev1.BasicAuthPasswordKey)
		}
	case corev1.SecretTypeSSHAuth:
		if len(s.Data[corev1.SSHAuthPrivateKey]) == 0 {
			errs = append(errs, field.Required(data.Key(corev1.SSHAuthPrivateKey), ""))
		}
	case corev1.SecretTypeTLS:
		need(corev1.TLSCertKey, corev1.TLSPrivateKeyKey)
	}
	return errs
}

func validateClaim(c *corev1.PersistentVolumeClaim) field.ErrorList {
	return append(validateObjectMeta(&c.ObjectMeta), validateClaimSpec(&c.Spec, field.NewPath("spec"))...)
}

// validateClaimSpec checks the spec of a claim or of a claim template.
func validateClaimSpec(s *corev1.PersistentVolumeClaimSpec, spec *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(s.AccessModes) == 0 {
		errs = append(errs, field.Required(spec.Child("accessModes"), "at least 1 access mode is required"))
	}
	errs = append(errs, validateAccessModes(s.AccessModes, spec.Child("accessModes"))...)
	if s.Selector != nil {
		errs = append(errs, metavalidation.ValidateLabelSelector(s.Selector, metavalidation.LabelSelectorValidationOptions{}, spec.Child("selector"))...)
	}
	fieldPath := spec.Child("resources").Key(string(corev1.ResourceStorage))
	if q, ok := s.Resources.Requests[corev1.ResourceStorage]; !ok {
		errs = append(errs, field.Required(fieldPath, ""))
	} else if q.Sign() <= 0 {
		errs = append(errs, field.Invalid(fieldPath, q.String(), "must be greater than zero"))
	}
	errs = append(errs, checkOptional(ptr.Deref(s.StorageClassName, ""), spec.Child("storageClassName"), validation.IsDNS1123Subdomain)...)
	return append(errs, optionalOneOf(s.VolumeMode, spec.Child("volumeMode"), corev1.PersistentVolumeBlock, corev1.PersistentVolumeFilesystem)...)
}

func validateAccessModes(list []corev1.PersistentVolumeAccessMode, fieldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany, corev1.ReadWriteMany, corev1.ReadWriteOnce, corev1.ReadWriteOncePod}
	others := false
	for _, m := range list {
		known := slices.Contains(modes, m)
		if !known {
			errs = append(errs, field.NotSupported(fieldPath, m, modes))
		}
		others = others || known && m != corev1.ReadWriteOncePod
	}
	if others && slices.Contains(list, corev1.ReadWriteOncePod) {
		errs = append(errs, field.Forbidden(fieldPath, "may not use ReadWriteOncePod with other access modes"))
	}
	return errs
}

func validateServiceAccount(o *corev1.ServiceAccount) field.ErrorList {
	errs := validateObjectMeta(&o.ObjectMeta)
	for i, s := range o.ImagePullSecrets {
		errs = append(errs, checkRequired(s.Name, field.NewPath("imagePullSecrets").Index(i).Child("name"), isObjectName)...)
	}
	return errs
}

func validateNamespace(n metav1.Object) field.ErrorList {
	return apivalidation.ValidateObjectMetaAccessor(n, false, apivalidation.ValidateNamespaceName, field.NewPath("metadata"))
}

// ValidateObject checks an object with its defaults as the API server checks one that is created, in its
// words.
func ValidateObject(object metav1.Object) field.ErrorList {
	switch o := object.(type) {
	case *corev1.ConfigMap:
		return validateConfigMap(o)
	case *corev1.Secret:
		return validateSecret(o)
	case *corev1.PersistentVolumeClaim:
		return validateClaim(o)
	case *corev1.PersistentVolume:
		return validatePersistentVolume(o)
	case *corev1.Service:
		return validateService(o)
	case *corev1.Endpoints:
		return validateEndpoints(o)
	case *discoveryv1.EndpointSlice:
		return validateEndpointSlice(o)
	case *corev1.ServiceAccount:
		return validateServiceAccount(o)
	case *networkingv1.NetworkPolicy:
		return validateNetworkPolicy(o)
	}
	return validateNamespace(object)
}
