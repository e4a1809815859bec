// The effects, modules and workflows that every world has without listing them, as AIR text. Their
// hashes are part of the contract: intents carry the hash of their effect's definition.

#include "faces/worlds/air/builtins.h"

namespace pawl::worlds {

const char* const
    kBuiltinDefs
        [] =
            {
                R"({"$kind":"defeffect","impl":{"entrypoint":"http.request","module":"sys/builtin_effects@1"},"name":"sys/http.request@1","params":"sys/HttpRequestParams@1","receipt":"sys/HttpRequestReceipt@1"})",
                R"({"$kind":"defeffect","impl":{"entrypoint":"blob.put","module":"sys/builtin_effects@1"},"name":"sys/blob.put@1","params":"sys/BlobPutParams@1","receipt":"sys/BlobPutReceipt@1"})",
                R"({"$kind":"defeffect","impl":{"entrypoint":"blob.get","module":"sys/builtin_effects@1"},"name":"sys/blob.get@1","params":"sys/BlobGetParams@1","receipt":"sys/BlobGetReceipt@1"})",
                R"({"$kind":"defeffect","impl":{"entrypoint":"timer.set","module":"sys/builtin_effects@1"},"name":"sys/timer.set@1","params":"sys/TimerSetParams@1","receipt":"sys/TimerSetReceipt@1"})",
                R"({"$kind":"defeffect","impl":{"entrypoint":"portal.send","module":"sys/builtin_effects@1"},"name":"sys/portal.send@1","params":"sys/PortalSendParams@1","receipt":"sys/PortalSendReceipt@1"})",
                R"({"$kind":"defeffect","impl":{"entrypoint":"host.session.open","module":"sys/builtin_effects@1"},"name":"sys/host.session.open@1","params":"sys/HostSessionOpenParams@1","receipt":"sys/HostSessionOpenReceipt@1"})",
                R"({"$kind":"defeffect","impl":{"entrypoint":"host.exec","module":"sys/builtin_effects@1"},"name":"sys/host.exec@1","params":"sys/HostExecParams@1","receipt":"sys/HostExecReceipt@1"})",
                R"({"$kind":"defeffect","impl":{"entrypoint":"host.session.signal","module":"sys/builtin_effects@1"},"name":"sys/host.session.signal@1","params":"sys/HostSessionSignalParams@1","receipt":"sys/HostSessionSignalReceipt@1"})",
                R"({"$kind":"defeffect","impl":{"entrypoint":"host.fs.read_file","module":"sys/builtin_effects@1"},"name":"sys/host.fs.read_file@1","params":"sys/HostFsReadFileParams@1","receipt":"sys/HostFsReadFileReceipt@1"})",
                R"({"$kind":"defeffect","impl":{"entrypoint":"host.fs.write_file","module":"sys/builtin_effects@1"},"name":"sys/host.fs.write_file@1","params":"sys/HostFsWriteFileParams@1","receipt":"sys/HostFsWriteFileReceipt@1"})",
                R"({"$kind":"defeffect","impl":{"entrypoint":"host.fs.edit_file","module":"sys/builtin_effects@1"},"name":"sys/host.fs.edit_file@1","params":"sys/HostFsEditFileParams@1","receipt":"sys/HostFsEditFileReceipt@1"})",
                R"({"$kind":"defeffect","impl":{"entrypoint":"host.fs.apply_patch","module":"sys/builtin_effects@1"},"name":"sys/host.fs.apply_patch@1","params":"sys/HostFsApplyPatchParams@1","receipt":"sys/HostFsApplyPatchReceipt@1"})",
                R"({"$kind":"defeffect","impl":{"entrypoint":"host.fs.grep","module":"sys/builtin_effects@1"},"name":"sys/host.fs.grep@1","params":"sys/HostFsGrepParams@1","receipt":"sys/HostFsGrepReceipt@1"})",
                R"({"$kind":"defeffect","impl":{"entrypoint":"host.fs.glob","module":"sys/builtin_effects@1"},"name":"sys/host.fs.glob@1","params":"sys/HostFsGlobParams@1","receipt":"sys/HostFsGlobReceipt@1"})",
                R"({"$kind":"defeffect","impl":{"entrypoint":"host.fs.stat","module":"sys/builtin_effects@1"},"name":"sys/host.fs.stat@1","params":"sys/HostFsStatParams@1","receipt":"sys/HostFsStatReceipt@1"})",
                R"({"$kind":"defeffect","impl":{"entrypoint":"host.fs.exists","module":"sys/builtin_effects@1"},"name":"sys/host.fs.exists@1","params":"sys/HostFsExistsParams@1","receipt":"sys/HostFsExistsReceipt@1"})",
                R"({"$kind":"defeffect","impl":{"entrypoint":"host.fs.list_dir","module":"sys/builtin_effects@1"},"name":"sys/host.fs.list_dir@1","params":"sys/HostFsListDirParams@1","receipt":"sys/HostFsListDirReceipt@1"})",
                R"({"$kind":"defeffect","impl":{"entrypoint":"llm.generate","module":"sys/builtin_effects@1"},"name":"sys/llm.generate@1","params":"sys/LlmGenerateParams@1","receipt":"sys/LlmGenerateReceipt@1"})",
                R"({"$kind":"defeffect","impl":{"entrypoint":"llm.count_tokens","module":"sys/builtin_effects@1"},"name":"sys/llm.count_tokens@1","params":"sys/LlmCountTokensParams@1","receipt":"sys/LlmCountTokensReceipt@1"})",
                R"({"$kind":"defeffect","impl":{"entrypoint":"llm.compact","module":"sys/builtin_effects@1"},"name":"sys/llm.compact@1","params":"sys/LlmCompactParams@1","receipt":"sys/LlmCompactReceipt@1"})",
                R"({"$kind":"defeffect","impl":{"entrypoint":"vault.put","module":"sys/builtin_effects@1"},"name":"sys/vault.put@1","params":"sys/VaultPutParams@1","receipt":"sys/VaultPutReceipt@1"})",
                R"({"$kind":"defeffect","impl":{"entrypoint":"vault.rotate","module":"sys/builtin_effects@1"},"name":"sys/vault.rotate@1","params":"sys/VaultRotateParams@1","receipt":"sys/VaultRotateReceipt@1"})",
                R"({"$kind":"defeffect","impl":{"entrypoint":"governance.propose","module":"sys/builtin_effects@1"},"name":"sys/governance.propose@1","params":"sys/GovProposeParams@1","receipt":"sys/GovProposeReceipt@1"})",
                R"({"$kind":"defeffect","impl":{"entrypoint":"governance.shadow","module":"sys/builtin_effects@1"},"name":"sys/governance.shadow@1","params":"sys/GovShadowParams@1","receipt":"sys/GovShadowReceipt@1"})",
                R"({"$kind":"defeffect","impl":{"entrypoint":"governance.approve","module":"sys/builtin_effects@1"},"name":"sys/governance.approve@1","params":"sys/GovApproveParams@1","receipt":"sys/GovApproveReceipt@1"})",
                R"({"$kind":"defeffect","impl":{"entrypoint":"governance.apply","module":"sys/builtin_effects@1"},"name":"sys/governance.apply@1","params":"sys/GovApplyParams@1","receipt":"sys/GovApplyReceipt@1"})",
                R"({"$kind":"defeffect","impl":{"entrypoint":"workspace.resolve","module":"sys/builtin_effects@1"},"name":"sys/workspace.resolve@1","params":"sys/WorkspaceResolveParams@1","receipt":"sys/WorkspaceResolveReceipt@1"})",
                R"({"$kind":"defeffect","impl":{"entrypoint":"workspace.empty_root","module":"sys/builtin_effects@1"},"name":"sys/workspace.empty_root@1","params":"sys/WorkspaceEmptyRootParams@1","receipt":"sys/WorkspaceEmptyRootReceipt@1"})",
                R"({"$kind":"defeffect","impl":{"entrypoint":"workspace.list","module":"sys/builtin_effects@1"},"name":"sys/workspace.list@1","params":"sys/WorkspaceListParams@1","receipt":"sys/WorkspaceListReceipt@1"})",
                R"({"$kind":"defeffect","impl":{"entrypoint":"workspace.read_ref","module":"sys/builtin_effects@1"},"name":"sys/workspace.read_ref@1","params":"sys/WorkspaceReadRefParams@1","receipt":"sys/WorkspaceReadRefReceipt@1"})",
                R"({"$kind":"defeffect","impl":{"entrypoint":"workspace.read_bytes","module":"sys/builtin_effects@1"},"name":"sys/workspace.read_bytes@1","params":"sys/WorkspaceReadBytesParams@1","receipt":"sys/WorkspaceReadBytesReceipt@1"})",
                R"({"$kind":"defeffect","impl":{"entrypoint":"workspace.write_bytes","module":"sys/builtin_effects@1"},"name":"sys/workspace.write_bytes@1","params":"sys/WorkspaceWriteBytesParams@1","receipt":"sys/WorkspaceWriteBytesReceipt@1"})",
                R"({"$kind":"defeffect","impl":{"entrypoint":"workspace.write_ref","module":"sys/builtin_effects@1"},"name":"sys/workspace.write_ref@1","params":"sys/WorkspaceWriteRefParams@1","receipt":"sys/WorkspaceWriteRefReceipt@1"})",
                R"({"$kind":"defeffect","impl":{"entrypoint":"workspace.remove","module":"sys/builtin_effects@1"},"name":"sys/workspace.remove@1","params":"sys/WorkspaceRemoveParams@1","receipt":"sys/WorkspaceRemoveReceipt@1"})",
                R"({"$kind":"defeffect","impl":{"entrypoint":"workspace.diff","module":"sys/builtin_effects@1"},"name":"sys/workspace.diff@1","params":"sys/WorkspaceDiffParams@1","receipt":"sys/WorkspaceDiffReceipt@1"})",
                R"({"$kind":"defeffect","impl":{"entrypoint":"workspace.annotations_get","module":"sys/builtin_effects@1"},"name":"sys/workspace.annotations_get@1","params":"sys/WorkspaceAnnotationsGetParams@1","receipt":"sys/WorkspaceAnnotationsGetReceipt@1"})",
                R"({"$kind":"defeffect","impl":{"entrypoint":"workspace.annotations_set","module":"sys/builtin_effects@1"},"name":"sys/workspace.annotations_set@1","params":"sys/WorkspaceAnnotationsSetParams@1","receipt":"sys/WorkspaceAnnotationsSetReceipt@1"})",
                R"({"$kind":"defeffect","impl":{"entrypoint":"introspect.manifest","module":"sys/builtin_effects@1"},"name":"sys/introspect.manifest@1","params":"sys/IntrospectManifestParams@1","receipt":"sys/IntrospectManifestReceipt@1"})",
                R"({"$kind":"defeffect","impl":{"entrypoint":"introspect.workflow_state","module":"sys/builtin_effects@1"},"name":"sys/introspect.workflow_state@1","params":"sys/IntrospectWorkflowStateParams@1","receipt":"sys/IntrospectWorkflowStateReceipt@1"})",
                R"({"$kind":"defeffect","impl":{"entrypoint":"introspect.journal_head","module":"sys/builtin_effects@1"},"name":"sys/introspect.journal_head@1","params":"sys/IntrospectJournalHeadParams@1","receipt":"sys/IntrospectJournalHeadReceipt@1"})",
                R"({"$kind":"defeffect","impl":{"entrypoint":"introspect.list_cells","module":"sys/builtin_effects@1"},"name":"sys/introspect.list_cells@1","params":"sys/IntrospectListCellsParams@1","receipt":"sys/IntrospectListCellsReceipt@1"})",
                R"({"$kind":"defworkflow","context":"sys/WorkflowContext@1","effects_emitted":[],"event":"sys/WorkspaceCommit@1","impl":{"entrypoint":"step","module":"sys/builtin_workspaces@1"},"key_schema":"sys/WorkspaceName@1","name":"sys/Workspace@1","state":"sys/WorkspaceHistory@1"})",
                R"({"$kind":"defmodule","name":"sys/builtin_effects@1","runtime":{"kind":"builtin"}})",
                R"({"$kind":"defmodule","name":"sys/builtin_workspaces@1","runtime":{"kind":"builtin"}})",
                nullptr,
};

}  // namespace pawl::worlds
