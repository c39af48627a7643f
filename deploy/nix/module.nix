# A module of NixOS and of Home Manager for action tags: it writes the file of a
# mail account, for `countersign triage accounts set NAME -f FILE`.
{ config, lib, options, ... }:

let
  inherit (lib) mkIf mkOption types;
  cfg = config.programs.countersign.triage;

  action = types.submodule {
    options = {
      description = mkOption {
        type = types.str;
        default = "";
        description = "The description of the action.";
      };
      gateway.server = mkOption {
        type = types.str;
        description = "The source of the tool, as `countersign source list` shows it.";
      };
      gateway.tool = mkOption {
        type = types.str;
        description = "The name of the tool.";
      };
      prompt = mkOption {
        type = types.str;
        default = "";
        description = "Text that is added to the question for a language model.";
      };
      defaultArgs = mkOption {
        type = types.attrsOf types.anything;
        default = { };
        description = "Arguments of each call. They win over values of the message.";
      };
    };
  };

  # Empty texts and sets are left out, as the account has no such members.
  present = lib.filterAttrs (_: value: value != "" && value != { });

  definition = a: present {
    inherit (a) description prompt;
    source = a.gateway.server;
    tool = a.gateway.tool;
    default_args = a.defaultArgs;
  };

  configuration = cfg.account // {
    proposals = (cfg.account.proposals or { }) // {
      actions = lib.mapAttrs (_: definition) cfg.actions;
      max_actions_per_sync = cfg.maxActionsPerSync;
    };
  };

  file = { "countersign/triage.json".text = builtins.toJSON configuration; };
in
{
  options.programs.countersign.triage = {
    enable = mkOption {
      type = types.bool;
      default = false;
      description = "Whether to write the file of the mail account.";
    };
    account = mkOption {
      type = types.attrsOf types.anything;
      default = { };
      description = "The account, without its actions. It holds no password: it is readable by all users.";
    };
    actions = mkOption {
      type = types.attrsOf action;
      default = { };
      description = "The actions of tags in addition to the built-in ones, or in their place.";
    };
    maxActionsPerSync = mkOption {
      type = types.ints.between 1 1000;
      default = 10;
      description = "The number of tries that begin in one round.";
    };
  };

  # Home Manager has xdg.configFile, and NixOS environment.etc.
  config = mkIf cfg.enable (
    if options ? xdg then { xdg.configFile = file; } else { environment.etc = file; }
  );
}
