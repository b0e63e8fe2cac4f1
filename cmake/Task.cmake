# footplate_add_task(NAME SOURCES…): a plugin for run.task = "plugin:…/NAME.so". It needs LibTorch and footplate's headers,
# and no symbol of footplate's.
function(footplate_add_task name)
  add_library(${name} MODULE ${ARGN})
  target_link_libraries(${name} PRIVATE footplate_torch)
  target_link_options(${name} PRIVATE LINKER:--no-undefined)
  set_target_properties(${name} PROPERTIES PREFIX "" CXX_VISIBILITY_PRESET hidden LIBRARY_OUTPUT_DIRECTORY
                        ${PROJECT_BINARY_DIR}/tasks)
endfunction()
