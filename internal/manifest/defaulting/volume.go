package defaulting

import corev1 "k8s.io/api/core/v1"

// defaultVolumes sets the kind of each volume, and the mode of files.
func defaultVolumes(volumes []corev1.Volume) {
	for i := range volumes {
		v := &volumes[i]
		if v.VolumeSource == (corev1.VolumeSource{}) {
			v.EmptyDir = &corev1.EmptyDirVolumeSource{}
		}
		if v.HostPath != nil && v.HostPath.Type == nil {
			v.HostPath.Type = new(corev1.HostPathUnset)
		}
		if v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil && v.Ephemeral.VolumeClaimTemplate.Spec.VolumeMode == nil {
			v.Ephemeral.VolumeClaimTemplate.Spec.VolumeMode = new(corev1.PersistentVolumeFilesystem)
		}
		defaultFiles(v)
	}
}

func defaultFiles(v *corev1.Volume) {
	mode := func(m **int32) {
		if *m == nil {
			*m = new(corev1.ConfigMapVolumeSourceDefaultMode)
		}
	}
	if v.ConfigMap != nil {
		mode(&v.ConfigMap.DefaultMode)
	}
	if v.Secret != nil {
		mode(&v.Secret.DefaultMode)
	}
	if v.DownwardAPI != nil {
		mode(&v.DownwardAPI.DefaultMode)
		defaultDownward(v.DownwardAPI.Items)
	}
	if v.Projected != nil {
		mode(&v.Projected.DefaultMode)
		for _, s := range v.Projected.Sources {
			if s.DownwardAPI != nil {
				defaultDownward(s.DownwardAPI.Items)
			}
		}
	}
}

func defaultDownward(items []corev1.DownwardAPIVolumeFile) {
	for _, f := range items {
		if f.FieldRef != nil && f.FieldRef.APIVersion == "" {
			f.FieldRef.APIVersion = "v1"
		}
	}
}
