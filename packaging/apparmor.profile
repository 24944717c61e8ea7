# podrun makes user namespaces, which Ubuntu allows only programs with a profile. The profile restricts nothing;
# the programs that podrun starts inherit it. Settings of this machine belong in local/podrun.
abi <abi/4.0>,

profile podrun /usr/{,local/}bin/podrun flags=(unconfined) {
  userns,

  include if exists <local/podrun>
}
