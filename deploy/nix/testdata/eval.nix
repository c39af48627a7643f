# Evaluates the module with a lib that has what it uses: options with defaults,
# sets and submodules. A missing or unknown value is an error, as in the modules of
# Nixpkgs.
{ values, home ? false }:

let
  lib = {
    inherit (builtins) mapAttrs;
    filterAttrs = keep: set:
      removeAttrs set (builtins.filter (name: !keep name set.${name}) (builtins.attrNames set));
    mkIf = condition: value: if condition then value else { };
    mkOption = option: option // { isOption = true; };
    types = {
      str = check "a text" builtins.isString;
      bool = check "a boolean" builtins.isBool;
      anything = at: value: value;
      attrsOf = type: at: value:
        builtins.mapAttrs (name: type "${at}.${name}") (check "a set" builtins.isAttrs at value);
      ints.between = low: high: check "a number of the range" (v: builtins.isInt v && v >= low && v <= high);
      submodule = module: fill module.options;
    };
  };

  check = kind: is: at: value: if is value then value else throw "${at} is not ${kind}";

  # fill returns values with the defaults of options.
  fill = options: at: given:
    let
      unknown = removeAttrs given (builtins.attrNames options);
      one = name: option:
        if !(option.isOption or false) then fill option "${at}.${name}" (given.${name} or { })
        else if given ? ${name} then option.type "${at}.${name}" given.${name}
        else option.default or (throw "${at}.${name} has no value");
    in
    if unknown != { } then throw "${at} has no option ${toString (builtins.attrNames unknown)}"
    else builtins.mapAttrs one options;

  module = import ../module.nix {
    inherit lib config;
    options = if home then { xdg = { }; } else { };
  };
  config = fill module.options "config" { programs.countersign.triage = values; };
in
module.config
